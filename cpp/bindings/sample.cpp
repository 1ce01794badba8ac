#include "poise/sample.hpp"

#include <cmath>

#include "float_mode.hpp"
#include "sample.hpp"

namespace poise {

namespace {

nb::tuple sample_clip(const Model& model, nb::object coefficients, double start, double rate,
                      nb::object times) {
    const InArray c = array_in(coefficients, "coefficients"), t = array_in(times, "times");
    const int nq = model.nq(), nv = model.nv();
    if (c.ndim() != 3 || c.shape(0) < 1 || c.shape(1) != 4 ||
        static_cast<std::int64_t>(c.shape(2)) != nq)
        throw Error("coefficients has shape " + shape_text(shape_of(c)) + ", expected (k, 4, " +
                    std::to_string(nq) + ")");
    if (t.ndim() != 1) throw Error("times must have one axis");
    if (!(rate > 0) || !std::isfinite(rate) || !std::isfinite(start))
        throw Error("start and rate must be finite, rate positive");
    const std::int64_t n = static_cast<std::int64_t>(t.size());
    check_finite(t.data(), n, "times");
    OutArray q = make_array({n, nq}), v = make_array({n, nv}), a = make_array({n, nv});
    const Spline spline = {c.data(), static_cast<std::int64_t>(c.shape(0)), start, rate};
    {
        nb::gil_scoped_release release;
        for (std::int64_t i = 0; i < n; ++i)
            sample(model.forest(), spline, t.data()[i], q.data() + i * nq, v.data() + i * nv,
                   a.data() + i * nv);
    }
    return nb::make_tuple(q, v, a);
}

}  // namespace

void bind_sample(nb::module_& m) {
    m.def("sample", &sample_clip, "model"_a, "coefficients"_a, "start"_a, "rate"_a, "times"_a,
          nb::call_guard<KernelFloatMode>(),
          "Positions, velocities and accelerations of a clip's spline at these times.");
}

}  // namespace poise
