// The module poise._core: what Python may call. Nothing is computed here.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include <nanobind/stl/map.h>

#include "balance.hpp"
#include "dispatch.hpp"
#include "float_mode.hpp"
#include "render.hpp"
#include "sample.hpp"
#include "world.hpp"

namespace poise {

namespace {

struct Sizes {
    std::vector<std::int64_t> out0, out1;
};

Sizes result_sizes(What what, std::int64_t n, const Model& m) {
    const std::int64_t nv = m.nv(), nl = m.nl();
    switch (what) {
        case What::forward_kinematics: return {{n, nl, 3}, {n, nl, 4}};
        case What::mass_matrix: return {{n, nv, nv}, {}};
        case What::jacobian: return {{n, 6, nv}, {}};
        case What::jacobian_bias: return {{n, 6}, {}};
        case What::center_of_mass: return {{n, 3}, {}};
        case What::centroidal_momentum: return {{n, 6, nv}, {n, 6}};
        case What::energy: return {{n, 2}, {}};
        case What::stable_pd:
        case What::drive:
        case What::kane: return {{n, nv}, {n, nv}};
        default: return {{n, nv}, {}};
    }
}

nb::object answer(const Model& model, nb::object numbers, int what, std::int64_t n,
                  bool single_precision, nb::object q, nb::object v, nb::object a, nb::object tau,
                  nb::object external, nb::object target_q, nb::object target_v, nb::object kp,
                  nb::object kd, nb::object gravity, double dt, int form, int method, bool limits,
                  int link, nb::object point, nb::object target_a, nb::object past, bool velocity,
                  bool feedforward, bool as_printed) {
    if (what < 0 || what > static_cast<int>(What::kane)) throw Error("no such question");
    if (form < 0 || form > 3 || method < 0 || method > 3) throw Error("no such form or method");
    if (n < 0) throw Error("n must be 0 or more");
    if (link < 0 || link >= model.nl()) throw Error("no such link");
    const int nq = model.nq(), nv = model.nv(), nl = model.nl();
    InArray keep[13];
    Query o{};
    o.what = static_cast<What>(what);
    o.n = n;
    const auto rows = [&](nb::handle h, const char* name, std::int64_t size, int i) {
        return query_rows(h, name, n, size, keep[i]);
    };
    const auto needs = [&](const Rows& r, const char* name) {
        if (!r.p) throw Error(std::string(name) + " is missing");
    };
    o.q = rows(q, "q", nq, 0);
    needs(o.q, "q");
    model.check_q(o.q.p, o.q.copy ? n : 1, "q");
    o.v = rows(v, "v", nv, 1);
    o.a = rows(a, "a", nv, 2);
    o.tau = rows(tau, "tau", nv, 3);
    o.external = rows(external, "external", 6 * static_cast<std::int64_t>(nl), 4);
    o.target_q = rows(target_q, "target.q", nq, 5);
    o.target_v = rows(target_v, "target.v", nv, 6);
    o.kp = rows(kp, "kp", nv, 7);
    o.kd = rows(kd, "kd", nv, 8);
    if (o.what == What::forward_dynamics) needs(o.tau, "tau");
    o.target_a = rows(target_a, "target.a", nv, 11);
    o.past = rows(past, "target.past", 2 * static_cast<std::int64_t>(nq), 12);
    o.velocity = velocity;
    o.feedforward = feedforward;
    o.as_printed = as_printed;
    if (o.what == What::kane && !o.target_q.p) needs(o.a, "a");
    if (o.past.p) model.check_q(o.past.p, o.past.copy ? 2 * n : 2, "target.past");
    if (o.what == What::stable_pd || o.what == What::drive || o.target_q.p) {
        needs(o.target_q, "target.q");
        needs(o.kp, "kp");
        needs(o.kd, "kd");
        model.check_q(o.target_q.p, o.target_q.copy ? n : 1, "target.q");
        // plain PD alone may look at the present: dt = 0
        if (!(dt > 0 || (dt == 0 && o.what == What::drive)) || !std::isfinite(dt))
            throw Error("dt is " + std::to_string(dt) + " s; it must be positive");
        for (int i = 7; i < 9; ++i)
            for (std::size_t k = 0; k < keep[i].size(); ++k)
                if (keep[i].data()[k] < 0 || keep[i].data()[k] > 1e15)
                    throw Error(std::string(i == 7 ? "kp" : "kd") + " of joint '" +
                                model.joint_name(model.forest().dof_body[k % nv]) +
                                "' must be 0 or more, and at most 1e15");
    }
    const Rows g = query_rows(gravity, "gravity", 1, 3, keep[9]);
    const Rows p = query_rows(point, "point", 1, 3, keep[10]);
    needs(g, "gravity");
    needs(p, "point");
    std::copy(g.p, g.p + 3, o.gravity);
    std::copy(p.p, p.p + 3, o.point);
    o.dt = dt;
    o.form = static_cast<Form>(form);
    o.method = static_cast<Method>(method);
    o.limits = limits;
    o.link = link;

    const Sizes sizes = result_sizes(o.what, n, model);
    OutArray out0 = make_array(sizes.out0);
    OutArray out1 = make_array(sizes.out1.empty() ? std::vector<std::int64_t>{0} : sizes.out1);
    std::vector<std::int32_t> fault(n, -1);
    o.out0 = out0.data();
    o.out1 = out1.data();
    o.fault = fault.data();
    OwnNumbers own;
    const Numbers x = own.read(numbers, model, n);
    const Kernel& k = kernel((n > 1 ? 2 : 0) + (single_precision ? 1 : 0));
    if (n > 0) {
        nb::gil_scoped_release release;
        k.answer(model.forest(), x, o, 0, n);
    }
    for (std::int64_t i = 0; i < n; ++i)
        if (fault[i] >= 0 && o.method == Method::pcg && o.what == What::stable_pd)
            throw Error("conjugate gradients did not converge" +
                        (n > 1 ? " in state " + std::to_string(i) : std::string()));
        else if (fault[i] >= 0)
            throw Error("the mass matrix is singular at joint '" + model.joint_name(fault[i]) +
                        "'" + (n > 1 ? " of state " + std::to_string(i) : std::string()) +
                        ": axes in line, or nothing to move; give the joint some armature");
    if (sizes.out1.empty()) return nb::cast(out0);
    return nb::make_tuple(out0, out1);
}

std::map<std::string, std::string> build_info() {
    std::map<std::string, std::string> out;
    const std::string text = POISE_BUILD_INFO;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = text.find('|', at);
        if (end == std::string::npos) end = text.size();
        const std::string item = text.substr(at, end - at);
        const std::size_t eq = item.find('=');
        if (eq != std::string::npos) out[item.substr(0, eq)] = item.substr(eq + 1);
        at = end + 1;
    }
    out["version"] = POISE_VERSION;
    return out;
}

// multiply-adds per second of one core in the lanes of the chosen kernel, best of several windows
double multiply_add_rate(bool single_precision) {
    const Kernel& k = kernel(2 + (single_precision ? 1 : 0));
    double best = 0, sink = 0;
    for (int i = 0; i < 40; ++i) {
        const auto start = std::chrono::steady_clock::now();
        sink += k.multiply_adds(200000);
        const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
        best = std::max(best, 10.0 * 200000 * k.lanes() / t.count());
    }
    return sink == -1 ? 0 : best;
}

void translate(const std::exception_ptr& p, void*) {
    const auto raise = [](const char* what) {
        PyErr_SetString(nb::module_::import_("poise.errors").attr("PoiseError").ptr(), what);
    };
    try {
        std::rethrow_exception(p);
    } catch (const Error& e) {
        raise(e.what());
    } catch (const std::invalid_argument& e) {
        raise(e.what());
    } catch (const std::bad_cast&) {
        raise("an argument has the wrong type");
    }
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native core of poise: the forest, its algorithms, worlds of many copies.";
    nb::register_exception_translator(translate);
    // compiled models live on their characters, which may live until the interpreter ends
    nb::set_leak_warnings(false);
    // for all that computes
    const nb::call_guard<KernelFloatMode> floats;

    m.def(
        "isa",
        [] {
            const ChosenIsas& chosen = chosen_isas();
            return std::map<std::string, std::string>{{"single", chosen.single},
                                                      {"batch", chosen.batch}};
        },
        "Instruction sets of the kernels in use: 'single' for one state, 'batch' for several.");
    m.def("available_isas", &built_isas, "Instruction sets that were built.");
    m.def("supported_isas", &supported_isas,
          "Instruction sets that were built and that this CPU has.");
    m.def("choose_isa", &choose_isa, "name"_a,
          "Use one instruction set for all that is made from now on; '' is the default: POISE_ISA, "
          "or by the rule of dispatch.hpp.");
    m.def("build_info", &build_info, "Compiler, flags and version of this build.");
    m.def("multiply_add_rate", &multiply_add_rate, "single_precision"_a = false, floats,
          "Multiply-adds per second of one core, in lanes.");
    try {
        chosen_isas();  // now, from POISE_ISA; a wrong one is an error where kernels are first used
    } catch (const std::invalid_argument&) {
    }
    m.attr("MEMORY") = kMemory;
    m.attr("PUSHES") = kPushes;

    nb::class_<Model>(m, "Model", "A compiled forest.")
        .def(nb::init<nb::object>(), "forest"_a, floats)
        .def_prop_ro("nq", &Model::nq)
        .def_prop_ro("nv", &Model::nv)
        .def_prop_ro("nl", &Model::nl)
        .def_prop_ro("nb", &Model::nb_);

    bind_sample(m);
    bind_render(m);

    nb::class_<Gains>(m, "Gains", "Gains of a forest, checked.")
        .def(nb::init<const Model&, nb::object, nb::object, nb::object>(), "model"_a, "kp"_a,
             "kd"_a, "pin"_a);

    nb::class_<View>(m, "View", "An array whose memory was looked up once.")
        .def(
            "__init__",
            [](View* self, nb::object array) { new (self) View{array_in(array, "array")}; },
            "array"_a)
        .def("any", &View::any, "Whether a number in it is not zero.");

    nb::class_<World>(m, "World", "n copies of a scene.")
        .def(nb::init<nb::object, nb::object, std::int64_t, double, bool, int, nb::object,
                      nb::object, nb::object>(),
             "model"_a, "whole"_a, "n"_a, "dt"_a, "single_precision"_a, "threads"_a, "gravity"_a,
             "numbers"_a.none(), "touch"_a.none() = nb::none(), floats)
        .def("correct_momentum", &World::correct_momentum, "on"_a,
             "Whether trees that nothing holds keep their momentum exactly.")
        .def("read", &World::read)
        .def("write", &World::write, "q"_a, "v"_a, "time"_a, "memory"_a.none(), "which"_a.none(),
             floats)
        .def("time", &World::time)
        .def("memory", &World::memory)
        .def("torque", &World::torque)
        .def("contacts", &World::contacts)
        .def("saturated", &World::saturated)
        .def("spares", &World::spares)
        .def("throw_spare", &World::throw_spare, "q"_a, "v"_a, "which"_a.none(), floats)
        .def("faults", &World::faults)
        .def("push", &World::push, "link"_a, "force"_a, "torque"_a, "point"_a, "at"_a, "duration"_a,
             "which"_a.none())
        .def("drag", &World::drag, "link"_a, "to"_a, "velocity"_a, "point"_a, "stiffness"_a,
             "damping"_a, "which"_a.none())
        .def("release", &World::release, "link"_a, "which"_a.none())
        .def("meet", &World::meet, "touches"_a)
        .def("step", &World::step, "gains"_a.none(), "target_q"_a.none(), "target_v"_a.none(),
             "target_a"_a.none(), "strength"_a.none(), "pin"_a.none(), "force"_a.none(),
             "acceleration"_a.none(), "steps"_a, "rows"_a, "form"_a, "method"_a, "embedded"_a,
             "feedforward"_a, "accelerated"_a.none() = nb::none(), floats)
        .def("torques", &World::torques, "q"_a, "v"_a, "gains"_a, "target_q"_a, "target_v"_a.none(),
             "load"_a.none(), "gravity"_a, "form"_a, "method"_a, floats)
        .def("set_gravity", &World::set_gravity, "gravity"_a)
        .def_prop_ro("isa", &World::isa)
        .def_prop_ro("threads", &World::threads);

    m.def("answer", &answer, "model"_a, "numbers"_a.none(), "what"_a, "n"_a, "single_precision"_a,
          "q"_a, "v"_a.none(), "a"_a.none(), "tau"_a.none(), "external"_a.none(),
          "target_q"_a.none(), "target_v"_a.none(), "kp"_a.none(), "kd"_a.none(), "gravity"_a,
          "dt"_a, "form"_a, "method"_a, "limits"_a, "link"_a, "point"_a,
          "target_a"_a.none() = nb::none(), "past"_a.none() = nb::none(), "velocity"_a = true,
          "feedforward"_a = true, "as_printed"_a = false, floats,
          "One question of poise.dynamics about n states.");
    bind_balance(m);
}

}  // namespace poise
