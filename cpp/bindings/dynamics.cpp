#include "dynamics.hpp"

#include <cmath>

#include "dispatch.hpp"
#include "float_mode.hpp"

namespace poise {

namespace {

const Model& model_in(nb::handle h) {
    if (!nb::isinstance<Model>(h)) throw Error("model must be a Model");
    return nb::cast<const Model&>(h);
}

}  // namespace

// Inputs of one query, checked and kept alive, and its results.
class QueryCall {
  public:
    QueryCall(const Dynamics& dynamics, Quantity quantity, std::int64_t n, nb::handle q)
        : model_(dynamics.model_), overrides_(dynamics.overrides_),
          single_precision_(dynamics.single_precision_), n_(n) {
        if (n < 0) throw Error("n must be 0 or more");
        o.quantity = quantity;
        o.n = n;
        o.dt = 1;
        o.velocity = o.feedforward = true;
        o.form = Form::implicit;
        o.q = needed(q, "q", model_.nq());
        model_.check_q(o.q.p, o.q.copy ? n : 1, "q");
    }

    Rows rows(nb::handle h, const char* name, std::int64_t size) {
        return query_rows(h, name, n_, size, keep_[kept_++]);
    }
    Rows needed(nb::handle h, const char* name, std::int64_t size) {
        const Rows r = rows(h, name, size);
        if (!r.p) throw Error(std::string(name) + " is missing");
        return r;
    }
    void velocity(nb::handle v) { o.v = rows(v, "v", model_.nv()); }
    void external(nb::handle wrenches) {
        o.external = rows(wrenches, "external", 6 * static_cast<std::int64_t>(model_.nl()));
    }
    void gravity(nb::handle g) { vector(g, "gravity", o.gravity); }
    void point(int link, nb::handle p) {
        if (link < 0 || link >= model_.nl()) throw Error("no such link");
        o.link = link;
        vector(p, "point", o.point);
    }
    void target(const ServoTarget& t) {
        o.target_q = needed(t.q, "target.q", model_.nq());
        o.target_v = rows(t.v, "target.v", model_.nv());
        o.kp = gains(t.kp, "kp");
        o.kd = gains(t.kd, "kd");
        o.target_a = rows(t.a, "target.a", model_.nv());
        o.past = rows(t.past, "target.past", 2 * static_cast<std::int64_t>(model_.nq()));
        model_.check_q(o.target_q.p, o.target_q.copy ? n_ : 1, "target.q");
        if (o.past.p) model_.check_q(o.past.p, o.past.copy ? 2 * n_ : 2, "target.past");
        // plain PD may look at the present: dt = 0
        if (!(t.dt > 0 || (t.dt == 0 && o.quantity == Quantity::drive)) || !std::isfinite(t.dt))
            throw Error("dt is " + std::to_string(t.dt) + " s; it must be positive");
        o.dt = t.dt;
    }
    void solver(int form, int method) {
        if (form < 0 || form > 3 || method < 0 || method > 3) throw Error("no such form or method");
        o.form = static_cast<Form>(form);
        o.method = static_cast<Method>(method);
    }

    OutArray one(std::vector<std::int64_t> shape) {
        shape.insert(shape.begin(), n_);
        OutArray out = make_array(shape);
        run(out.data(), nullptr);
        return out;
    }
    nb::tuple two(std::vector<std::int64_t> first, std::vector<std::int64_t> second) {
        first.insert(first.begin(), n_);
        second.insert(second.begin(), n_);
        OutArray out0 = make_array(first), out1 = make_array(second);
        run(out0.data(), out1.data());
        return nb::make_tuple(out0, out1);
    }
    // the first of two results
    OutArray first_of_two(std::int64_t size) {
        OutArray out = make_array({n_, size});
        std::vector<double> other(n_ * size);
        run(out.data(), other.data());
        return out;
    }

    Query o{};

  private:
    void vector(nb::handle h, const char* name, double* to) {
        const Rows r = query_rows(h, name, 1, 3, keep_[kept_++]);
        if (!r.p) throw Error(std::string(name) + " is missing");
        std::copy(r.p, r.p + 3, to);
    }
    Rows gains(nb::handle h, const char* name) {
        const InArray& array = keep_[kept_];
        const int nv = model_.nv();
        const Rows r = needed(h, name, nv);
        for (std::size_t k = 0; k < array.size(); ++k)
            if (array.data()[k] < 0 || array.data()[k] > 1e15)
                throw Error(std::string(name) + " of joint '" +
                            model_.joint_name(model_.forest().dof_body[k % nv]) +
                            "' must be 0 or more, and at most 1e15");
        return r;
    }
    void run(double* out0, double* out1) {
        o.out0 = out0;
        o.out1 = out1;
        std::vector<std::int32_t> fault(n_, -1);
        o.fault = fault.data();
        const ModelParameters x = parameters_of(overrides_, model_, n_);
        const Kernel& k = kernel((n_ > 1 ? 2 : 0) + (single_precision_ ? 1 : 0));
        if (n_ > 0) {
            nb::gil_scoped_release release;
            k.evaluate(model_.forest(), x, o, 0, n_);
        }
        for (std::int64_t i = 0; i < n_; ++i) {
            if (fault[i] < 0) continue;
            const std::string state = n_ > 1 ? " of state " + std::to_string(i) : std::string();
            if (o.method == Method::pcg)
                throw Error("conjugate gradients did not converge" +
                            (n_ > 1 ? " in state " + std::to_string(i) : std::string()));
            throw Error("the mass matrix is singular at joint '" + model_.joint_name(fault[i]) +
                        "'" + state +
                        ": axes in line, or nothing to move; give the joint some armature");
        }
    }

    const Model& model_;
    nb::handle overrides_;
    bool single_precision_;
    std::int64_t n_;
    InArray keep_[12];
    int kept_ = 0;
};

Dynamics::Dynamics(nb::object model, nb::object overrides, bool single_precision)
    : owner_(model), overrides_(overrides), model_(model_in(model)),
      single_precision_(single_precision) {
    if (!overrides.is_none() && !nb::isinstance<ModelOverrides>(overrides))
        throw Error("overrides must be ModelOverrides or None");
}

nb::tuple Dynamics::forward_kinematics(std::int64_t n, nb::object q) const {
    QueryCall call(*this, Quantity::forward_kinematics, n, q);
    return call.two({model_.nl(), 3}, {model_.nl(), 4});
}

OutArray Dynamics::link_velocities(std::int64_t n, nb::object q, nb::object v) const {
    QueryCall call(*this, Quantity::link_velocities, n, q);
    call.velocity(v);
    return call.one({model_.nl(), 6});
}

OutArray Dynamics::inverse_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object a,
                                    nb::object external, nb::object gravity) const {
    QueryCall call(*this, Quantity::inverse_dynamics, n, q);
    call.velocity(v);
    call.o.a = call.rows(a, "a", model_.nv());
    call.external(external);
    call.gravity(gravity);
    return call.one({model_.nv()});
}

OutArray Dynamics::forward_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object tau,
                                    nb::object external, nb::object gravity) const {
    QueryCall call(*this, Quantity::forward_dynamics, n, q);
    call.velocity(v);
    call.o.tau = call.needed(tau, "tau", model_.nv());
    call.external(external);
    call.gravity(gravity);
    return call.one({model_.nv()});
}

OutArray Dynamics::mass_matrix(std::int64_t n, nb::object q) const {
    QueryCall call(*this, Quantity::mass_matrix, n, q);
    return call.one({model_.nv(), model_.nv()});
}

OutArray Dynamics::jacobian(std::int64_t n, nb::object q, int link, nb::object point) const {
    QueryCall call(*this, Quantity::jacobian, n, q);
    call.point(link, point);
    return call.one({6, model_.nv()});
}

OutArray Dynamics::jacobian_bias(std::int64_t n, nb::object q, nb::object v, int link,
                                 nb::object point) const {
    QueryCall call(*this, Quantity::jacobian_bias, n, q);
    call.velocity(v);
    call.point(link, point);
    return call.one({6});
}

OutArray Dynamics::center_of_mass(std::int64_t n, nb::object q) const {
    QueryCall call(*this, Quantity::center_of_mass, n, q);
    return call.one({3});
}

nb::tuple Dynamics::centroidal_momentum(std::int64_t n, nb::object q, nb::object v) const {
    QueryCall call(*this, Quantity::centroidal_momentum, n, q);
    call.velocity(v);
    return call.two({6, model_.nv()}, {6});
}

OutArray Dynamics::energy(std::int64_t n, nb::object q, nb::object v, nb::object gravity) const {
    QueryCall call(*this, Quantity::energy, n, q);
    call.velocity(v);
    call.gravity(gravity);
    return call.one({2});
}

nb::tuple Dynamics::stable_pd(std::int64_t n, nb::object q, nb::object v, const ServoTarget& target,
                              nb::object force, nb::object external, nb::object gravity, int form,
                              int method, bool limits) const {
    QueryCall call(*this, Quantity::stable_pd, n, q);
    call.velocity(v);
    call.target(target);
    call.o.tau = call.rows(force, "tau", model_.nv());
    call.external(external);
    call.gravity(gravity);
    call.solver(form, method);
    call.o.limits = limits;
    return call.two({model_.nv()}, {model_.nv()});
}

nb::tuple Dynamics::drive(std::int64_t n, nb::object q, nb::object v, const ServoTarget& target,
                          int form) const {
    QueryCall call(*this, Quantity::drive, n, q);
    call.velocity(v);
    call.target(target);
    call.solver(form, 0);
    return call.two({model_.nv()}, {model_.nv()});
}

OutArray Dynamics::kane_inverse_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object a,
                                         nb::object external, nb::object gravity,
                                         bool as_printed) const {
    QueryCall call(*this, Quantity::kane, n, q);
    call.velocity(v);
    call.o.a = call.needed(a, "a", model_.nv());
    call.external(external);
    call.gravity(gravity);
    call.o.as_printed = as_printed;
    return call.first_of_two(model_.nv());
}

nb::tuple Dynamics::kane_control(std::int64_t n, nb::object q, nb::object v,
                                 const ServoTarget& target, nb::object external, nb::object gravity,
                                 bool target_velocity, bool feedforward, bool as_printed) const {
    QueryCall call(*this, Quantity::kane, n, q);
    call.velocity(v);
    call.target(target);
    call.external(external);
    call.gravity(gravity);
    call.o.velocity = target_velocity;
    call.o.feedforward = feedforward;
    call.o.as_printed = as_printed;
    return call.two({model_.nv()}, {model_.nv()});
}

void bind_dynamics(nb::module_& m) {
    const nb::call_guard<KernelFloatMode> floats;
    nb::class_<ServoTarget>(m, "ServoTarget",
                            "Target and gains of a servo, at the end of the step.")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, double, nb::object,
                      nb::object>(),
             "q"_a, "v"_a.none(), "kp"_a, "kd"_a, "dt"_a, "a"_a.none() = nb::none(),
             "past"_a.none() = nb::none())
        .def_ro("q", &ServoTarget::q, "Positions, shape (nq,) or (n, nq).")
        .def_ro("v", &ServoTarget::v, "Velocities, shape (nv,) or (n, nv), or None.")
        .def_ro("kp", &ServoTarget::kp, "Stiffness, shape (nv,) or (n, nv).")
        .def_ro("kd", &ServoTarget::kd, "Damping, shape (nv,) or (n, nv).")
        .def_ro("dt", &ServoTarget::dt, "Time step [s].")
        .def_ro("a", &ServoTarget::a, "Accelerations, shape (nv,) or (n, nv), or None.")
        .def_ro("past", &ServoTarget::past,
                "Positions one and two steps before, shape (2 nq,) or (n, 2 nq), or None.");
    nb::class_<Dynamics>(m, "Dynamics",
                         "Functions of n states of a model; arrays have one row, or one per state.")
        .def(nb::init<nb::object, nb::object, bool>(), "model"_a, "overrides"_a.none(),
             "single_precision"_a)
        .def("forward_kinematics", &Dynamics::forward_kinematics, "n"_a, "q"_a, floats,
             "Positions (n, nl, 3) and quaternions (n, nl, 4) of the links.")
        .def("link_velocities", &Dynamics::link_velocities, "n"_a, "q"_a, "v"_a.none(), floats,
             "Linear and angular velocities (n, nl, 6) of the links.")
        .def("inverse_dynamics", &Dynamics::inverse_dynamics, "n"_a, "q"_a, "v"_a.none(),
             "a"_a.none(), "external"_a.none(), "gravity"_a, floats,
             "Generalized forces (n, nv) by RNEA.")
        .def("forward_dynamics", &Dynamics::forward_dynamics, "n"_a, "q"_a, "v"_a.none(), "tau"_a,
             "external"_a.none(), "gravity"_a, floats, "Accelerations (n, nv) by ABA.")
        .def("mass_matrix", &Dynamics::mass_matrix, "n"_a, "q"_a, floats,
             "Joint-space inertia (n, nv, nv).")
        .def("jacobian", &Dynamics::jacobian, "n"_a, "q"_a, "link"_a, "point"_a, floats,
             "Jacobian (n, 6, nv) of a point in a link.")
        .def("jacobian_bias", &Dynamics::jacobian_bias, "n"_a, "q"_a, "v"_a.none(), "link"_a,
             "point"_a, floats, "Time derivative of the Jacobian times v (n, 6).")
        .def("center_of_mass", &Dynamics::center_of_mass, "n"_a, "q"_a, floats,
             "Center of mass (n, 3).")
        .def("centroidal_momentum", &Dynamics::centroidal_momentum, "n"_a, "q"_a, "v"_a.none(),
             floats, "Momentum matrix (n, 6, nv) and bias (n, 6).")
        .def("energy", &Dynamics::energy, "n"_a, "q"_a, "v"_a.none(), "gravity"_a, floats,
             "Kinetic and potential energy (n, 2).")
        .def("stable_pd", &Dynamics::stable_pd, "n"_a, "q"_a, "v"_a.none(), "target"_a,
             "force"_a.none(), "external"_a.none(), "gravity"_a, "form"_a, "method"_a, "limits"_a,
             floats, "Accelerations (n, nv) and torques (n, nv) of stable PD.")
        .def("drive", &Dynamics::drive, "n"_a, "q"_a, "v"_a.none(), "target"_a, "form"_a, floats,
             "Q (n, nv) and K (n, nv) of a drive.")
        .def("kane_inverse_dynamics", &Dynamics::kane_inverse_dynamics, "n"_a, "q"_a, "v"_a.none(),
             "a"_a, "external"_a.none(), "gravity"_a, "as_printed"_a, floats,
             "Generalized forces (n, nv) by Kane's equations.")
        .def("kane_control", &Dynamics::kane_control, "n"_a, "q"_a, "v"_a.none(), "target"_a,
             "external"_a.none(), "gravity"_a, "target_velocity"_a, "feedforward"_a, "as_printed"_a,
             floats, "Forces (n, nv) and accelerations (n, nv) that bring the links to a target.");
}

}  // namespace poise
