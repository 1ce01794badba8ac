// The module poise._core: what Python may call. Nothing is computed here.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include <nanobind/stl/map.h>

#include "balance.hpp"
#include "dispatch.hpp"
#include "dynamics.hpp"
#include "float_mode.hpp"
#include "render.hpp"
#include "sample.hpp"
#include "world.hpp"

namespace poise {

namespace {

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

// the type of a getter, for the stub
auto returns(const std::string& name, const std::string& type) {
    static std::vector<std::unique_ptr<std::string>> kept;  // nanobind keeps the pointer
    kept.push_back(std::make_unique<std::string>("def " + name + "(self) -> " + type));
    return nb::for_getter(nb::sig(kept.back()->c_str()));
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
    m.def("collide", &collide, "colliders"_a, "poses"_a, "near"_a,
          "Nearest points (n, 7) and touches (n, 4, 7) of two shapes as convex solids: gap, normal "
          "and point, an infinite gap where there is none; poses (n, 2, 7) are those of the "
          "colliders.");
    m.def("build_info", &build_info, "Compiler, flags and version of this build.");
    m.def("multiply_add_rate", &multiply_add_rate, "single_precision"_a = false, floats,
          "Multiply-adds per second of one core, in lanes.");
    try {
        chosen_isas();  // now, from POISE_ISA; a wrong one is an error where kernels are first used
    } catch (const std::invalid_argument&) {
    }
    m.attr("MEMORY") = kMemory;
    m.attr("PUSHES") = kPushes;

    nb::enum_<Form>(m, "Form", "How a drive uses its target; see poise.dynamics.stable_pd.")
        .value("pd", Form::pd, "Explicit PD, K = 0.")
        .value("explicit", Form::explicit_position, "Explicit position.")
        .value("spd", Form::spd, "K = kd dt.")
        .value("implicit", Form::implicit, "K = kd dt + kp dt².");
    nb::enum_<Method>(m, "Method", "How stable PD is solved.")
        .value("maba", Method::maba, "Articulated bodies, linear time.")
        .value("df", Method::df, "Dense factorization.")
        .value("sf", Method::sf, "Sparse factorization.")
        .value("pcg", Method::pcg, "Conjugate gradients.");
    nb::enum_<ContactModel>(m, "ContactModel")
        .value("impulse", ContactModel::impulse, "Rigid contact by impulses.")
        .value("penalty", ContactModel::penalty, "Springs and dampers.");
    nb::enum_<Solid>(m, "ShapeKind")
        .value("sphere", Solid::sphere)
        .value("capsule", Solid::capsule)
        .value("box", Solid::box)
        .value("cylinder", Solid::cylinder)
        .value("mesh", Solid::mesh);

    nb::class_<Model>(m, "Model", "A compiled forest.")
        .def(nb::init<nb::object>(), "forest"_a, floats)
        .def_prop_ro("nq", &Model::nq)
        .def_prop_ro("nv", &Model::nv)
        .def_prop_ro("nl", &Model::nl)
        .def_prop_ro("nb", &Model::nb_);

    nb::class_<ModelOverrides>(m, "ModelOverrides",
                               "Parameters in place of a model's; one row, or one per copy.")
        .def(nb::init<const Model&, nb::object, nb::object, nb::object, nb::object, nb::object,
                      nb::object, bool>(),
             "model"_a, "mass"_a.none() = nb::none(), "mc"_a.none() = nb::none(),
             "Io"_a.none() = nb::none(), "armature"_a.none() = nb::none(),
             "effort"_a.none() = nb::none(), "fixed"_a.none() = nb::none(), "scaled"_a = false)
        .def_ro("scaled", &ModelOverrides::scaled,
                "Whether each link's inertia is that of the model, times the ratio of the masses.")
        .def_prop_ro("copies", &ModelOverrides::copies,
                     "Rows of those that differ from copy to copy; 0: all are shared.")
        .def_ro("mass", &ModelOverrides::mass, returns("mass", "NDArray[numpy.float64] | None"),
                "Masses of the bodies, shape (nb,), or None.")
        .def_ro("mc", &ModelOverrides::mc, returns("mc", "NDArray[numpy.float64] | None"),
                "Mass times center of mass, (nb, 3), or None.")
        .def_ro("Io", &ModelOverrides::Io, returns("Io", "NDArray[numpy.float64] | None"),
                "Inertia about the joint, (nb, 6), or None.")
        .def_ro("armature", &ModelOverrides::armature,
                returns("armature", "NDArray[numpy.float64] | None"),
                "Rotor inertia, shape (nv,), or None.")
        .def_ro("effort", &ModelOverrides::effort,
                returns("effort", "NDArray[numpy.float64] | None"),
                "Effort limits, shape (nv,), or None.")
        .def_ro("fixed", &ModelOverrides::fixed, returns("fixed", "NDArray[numpy.float64] | None"),
                "Mass, and mass times position, of links welded to the world, (4,), or None.");

    bind_sample(m);
    bind_render(m);

    nb::class_<Gains>(m, "Gains", "Gains of a forest, checked.")
        .def(nb::init<const Model&, nb::object, nb::object, nb::object>(), "model"_a, "kp"_a,
             "kd"_a, "pin"_a)
        .def("__getstate__", &Gains::state)
        .def("__setstate__",
             [](Gains& gains, const Gains::State& state) { new (&gains) Gains(state); });

    nb::class_<View>(m, "View", "An array whose memory was looked up once.")
        .def(
            "__init__",
            [](View* self, nb::object array) { new (self) View{array_in(array, "array")}; },
            "array"_a)
        .def("any", &View::any, "Whether a number in it is not zero.");

    nb::class_<Drive>(m, "Drive", "Gains and a target, and how they act; see poise.Drive.")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, int, nb::object, nb::object,
                      nb::object, int, bool, nb::object>(),
             "gains"_a, "target_q"_a, "target_v"_a.none(), "target_a"_a.none(), "rows"_a,
             "strength"_a.none(), "pin"_a.none(), "form"_a, "method"_a, "embedded"_a,
             "feedforward"_a)
        .def_ro("target_q", &Drive::target_q, returns("target_q", "NDArray[numpy.float64]"),
                "Target positions, (nq,) or (n, nq), or k such rows.")
        .def_ro("target_v", &Drive::target_v, returns("target_v", "NDArray[numpy.float64] | None"),
                "Target velocities, or None.")
        .def_ro("target_a", &Drive::target_a, returns("target_a", "NDArray[numpy.float64] | None"),
                "Target accelerations, or None.")
        .def_ro("rows", &Drive::rows, "Number of target rows, one per step; 0: one target is held.")
        .def_ro("strength", &Drive::strength, returns("strength", "NDArray[numpy.float64] | None"),
                "Factor of gains and effort limits per link, (nl,) or (n, nl), or None.")
        .def_ro("pin", &Drive::pin, returns("pin", "NDArray[numpy.float64] | None"),
                "Weight of the pin of each link, (nl,) or (n, nl), or None.")
        .def_ro("form", &Drive::form, returns("form", "int | NDArray[numpy.uint8]"),
                "Index of the form, or of that of each degree of freedom, (nv,).")
        .def_ro("method", &Drive::method, "Index of the method.")
        .def_ro("embedded", &Drive::embedded, "Whether drive and dynamics are solved together.")
        .def_ro("feedforward", &Drive::feedforward,
                returns("feedforward", "bool | NDArray[numpy.bool_]"),
                "Whether free roots get the force of the target's motion, or which, (nv,).");

    nb::class_<Contacts>(m, "Contacts", "Contacts of the last step of all copies, one row each.")
        .def_ro("copy", &Contacts::copy, returns("copy", "NDArray[numpy.int64]"),
                "Index of the copy, shape (k,).")
        .def_ro("collider", &Contacts::collider, returns("collider", "NDArray[numpy.int64]"),
                "Index of the collider, shape (k,).")
        .def_ro("other", &Contacts::other, returns("other", "NDArray[numpy.int64]"),
                "The collider that it touches, or -1 for the ground.")
        .def_ro("point", &Contacts::point, returns("point", "NDArray[numpy.float64]"),
                "Where, in the world [m], shape (k, 3).")
        .def_ro("normal", &Contacts::normal, returns("normal", "NDArray[numpy.float64]"),
                "Unit vector towards `collider`, shape (k, 3).")
        .def_ro("impulse", &Contacts::impulse, returns("impulse", "NDArray[numpy.float64]"),
                "On `collider` [N s], shape (k, 3).")
        .def_ro("gap", &Contacts::gap, returns("gap", "NDArray[numpy.float64]"),
                "When the step began [m], shape (k,).");

    nb::class_<ProjectileStates>(m, "Projectiles", "Projectiles of all copies.")
        .def_ro("thrown", &ProjectileStates::thrown, returns("thrown", "NDArray[numpy.bool_]"),
                "Whether each has been thrown, shape (n, k).")
        .def_ro("q", &ProjectileStates::q, returns("q", "NDArray[numpy.float64]"),
                "Position and quaternion, shape (n, k, 7).")
        .def_ro("v", &ProjectileStates::v, returns("v", "NDArray[numpy.float64]"),
                "Linear and angular velocity, shape (n, k, 6).");

    nb::class_<Memory>(m, "Memory", "Memory of a state, without its zeros.")
        .def("dense", &Memory::dense, "With them, (n, size).");

    nb::class_<World>(m, "World", "n copies of a scene.")
        .def(nb::init<nb::object, nb::object, std::int64_t, double, bool, int, nb::object,
                      nb::object, nb::object>(),
             "model"_a, "whole"_a, "n"_a, "dt"_a, "single_precision"_a, "threads"_a, "gravity"_a,
             "overrides"_a.none(), "collision_model"_a.none() = nb::none(), floats)
        .def("correct_momentum", &World::correct_momentum, "on"_a,
             "Whether trees that nothing holds keep their momentum exactly.")
        .def("set_substeps", &World::set_substeps, "count"_a, "Of each step; dt is theirs.")
        .def("read", &World::read, "q (n, nq) and v (n, nv).")
        .def("read_into", &World::read_into, "fields"_a, "links"_a.none() = nb::none(),
             "pairs"_a.none() = nb::none(), floats,
             "Fills arrays by the names of their fields, of some links and pairs (k, 2).")
        .def("write", &World::write, "q"_a, "v"_a, "time"_a, "memory"_a.none(),
             "copies"_a.none() = nb::none(), floats,
             "Sets the state of some copies, a row each; no memory is a cold start.")
        .def("write_inertia", &World::write_inertia, "mass"_a, "mc"_a, "Io"_a, "copies"_a.none(),
             floats, "Sets the inertias of the bodies in some copies.")
        .def("write_friction", &World::write_friction, "friction"_a, "copies"_a.none(), floats,
             "Sets the friction of the surfaces in some copies.")
        .def("ray", &World::ray, "origin"_a, "direction"_a, "farthest"_a, "ground"_a, "links"_a,
             "skipped"_a, "nothing"_a, floats, "Distance, normal and link that rays hit.")
        .def("time", &World::time, "Clocks (n,) [s].")
        .def("memory", &World::memory, "Pushes, projectiles and contact impulses (n, size).")
        .def("snapshot", &World::snapshot, "The same, without its zeros.")
        .def("torque", &World::torque, "Torques of the last step (n, nv).")
        .def("contacts", &World::contacts, "Contacts of the last step.")
        .def("saturated", &World::saturated, "Torques at their effort limits (n, nv).")
        .def("projectiles", &World::projectiles, "Projectiles and whether they have been thrown.")
        .def("throw_projectile", &World::throw_projectile, "q"_a, "v"_a, "which"_a.none(), floats,
             "Throws a projectile; returns its index, or -1 if none is left.")
        .def("faults", &World::faults,
             "Copies, joints, times and singularity of those that diverged.")
        .def("fault_table", &World::fault_table, "Body or -1, singularity and time (n, 3).")
        .def("restore_faults", &World::restore_faults, "table"_a, "Freezes copies as in a table.")
        .def("push", &World::push, "link"_a, "force"_a, "torque"_a, "point"_a, "at"_a, "duration"_a,
             "which"_a.none(), "Adds a force and a torque on a link.")
        .def("drag", &World::drag, "link"_a, "to"_a, "velocity"_a, "point"_a, "stiffness"_a,
             "damping"_a, "which"_a.none(), "Adds or moves a spring that drags a link.")
        .def("release", &World::release, "link"_a, "which"_a.none(),
             "Ends pushes and springs of a link; -1 is all.")
        .def("step", &World::step, "drive"_a.none(), "force"_a.none(), "acceleration"_a.none(),
             "acceleration_mask"_a.none(), "steps"_a, floats,
             "Advances all copies; returns how many are frozen.")
        .def("torques", &World::torques, "q"_a, "v"_a, "gains"_a, "target_q"_a, "target_v"_a.none(),
             "load"_a.none(), "gravity"_a, "form"_a, "method"_a, floats,
             "Torques of a drive at given states (n, nv), for worlds without contact.")
        .def("start_profile", &World::start_profile, "Profiles the steps from now on.")
        .def("stop_profile", &World::stop_profile)
        .def("profile", &World::profile,
             "Seconds by phase, steps, contacts, rows solved, iterations, islands, residuals by "
             "size, the largest residual.")
        .def("set_gravity", &World::set_gravity, "gravity"_a)
        .def_prop_ro("isa", &World::isa)
        .def_prop_ro("tiles", &World::tiles)
        .def_prop_ro("threads", &World::threads);

    bind_dynamics(m);
    bind_balance(m);
}

}  // namespace poise
