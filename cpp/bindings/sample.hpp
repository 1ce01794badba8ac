#pragma once

#include "model.hpp"

namespace poise {

void bind_sample(nb::module_& m);

}  // namespace poise
