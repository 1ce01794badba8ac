// The functions of poise.dynamics: quantities of many states of one model.
#pragma once

#include "model.hpp"

namespace poise {

// Target and gains of a servo, at the end of the step.
struct ServoTarget {
    nb::object q, v;    // (nq), (nv) or None
    nb::object kp, kd;  // (nv)
    double dt;          // [s]
    nb::object a;       // (nv) or None
    nb::object past;    // (2 nq) positions one and two steps before, or None
};

// A model, its overrides and a precision. Each function takes the number n of states and arrays of
// one row, shared by all states, or of n rows.
class Dynamics {
  public:
    Dynamics(nb::object model, nb::object overrides, bool single_precision);

    nb::tuple forward_kinematics(std::int64_t n, nb::object q) const;
    OutArray link_velocities(std::int64_t n, nb::object q, nb::object v) const;
    OutArray inverse_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object a,
                              nb::object external, nb::object gravity) const;
    OutArray forward_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object tau,
                              nb::object external, nb::object gravity) const;
    OutArray mass_matrix(std::int64_t n, nb::object q) const;
    OutArray jacobian(std::int64_t n, nb::object q, int link, nb::object point) const;
    OutArray jacobian_bias(std::int64_t n, nb::object q, nb::object v, int link,
                           nb::object point) const;
    OutArray center_of_mass(std::int64_t n, nb::object q) const;
    nb::tuple centroidal_momentum(std::int64_t n, nb::object q, nb::object v) const;
    OutArray energy(std::int64_t n, nb::object q, nb::object v, nb::object gravity) const;
    nb::tuple stable_pd(std::int64_t n, nb::object q, nb::object v, const ServoTarget& target,
                        nb::object force, nb::object external, nb::object gravity, int form,
                        int method, bool limits) const;
    nb::tuple drive(std::int64_t n, nb::object q, nb::object v, const ServoTarget& target,
                    int form) const;
    OutArray kane_inverse_dynamics(std::int64_t n, nb::object q, nb::object v, nb::object a,
                                   nb::object external, nb::object gravity, bool as_printed) const;
    nb::tuple kane_control(std::int64_t n, nb::object q, nb::object v, const ServoTarget& target,
                           nb::object external, nb::object gravity, bool target_velocity,
                           bool feedforward, bool as_printed) const;

  private:
    friend class QueryCall;
    nb::object owner_, overrides_;  // keep both alive
    const Model& model_;
    bool single_precision_;
};

void bind_dynamics(nb::module_& m);

}  // namespace poise
