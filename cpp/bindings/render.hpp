// Pictures for Python: see render.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace poise {

void bind_render(nanobind::module_& m);

}  // namespace poise
