#pragma once

#include "model.hpp"
#include "poise/balance/balance_params.hpp"
#include "pool.hpp"

namespace poise {

// An array of settings, looked up once when it is assigned. In-place changes count.
struct SettingArray {
    nb::object object;
    InArray array;

    std::int64_t rows() const { return static_cast<std::int64_t>(array.shape(0)); }
};

// Every setting of the balance solver; `_core.BalanceParams` in Python.
struct BalanceSettings {
    BalanceParams params;
    SettingArray points;           // (k, 4) link and place in it: supports, then goals
    SettingArray sole_points;      // (c, 4) which support, and the point in its link
    SettingArray goals;            // (g, 3) desired positions
    SettingArray tracking_weight;  // (nv)
    SettingArray k_s, k_d;         // (nv)
    SettingArray joint_limits;     // (m, 9)
    SettingArray friction;         // (s) or (n, s)
};

// Accelerations, torques and diagnostics of n copies: NumPy arrays.
struct BalanceSolution {
    nb::object acceleration, torque, momentum_rate, angular_weight, constraint_residual,
        capture_point_error, desired_com, com, mass, support_weight, contact_points, contact_forces;
};

// Solves the balance problem for the copies of a scene: computes the tasks of states and targets,
// the desired accelerations of tracking, and solves for each copy.
class BalancePlanner {
  public:
    BalancePlanner(nb::object model, nb::object params, nb::object overrides, int threads);

    BalanceSolution solve(nb::object q, nb::object v, nb::object target_q, nb::object target_v,
                          nb::object target_a, nb::object schedule, nb::object gravity);

    nb::object params() const { return settings_; }

  private:
    void stiffen(const Rows& q, std::int64_t n, const BalanceSettings& settings);

    nb::object owner_, settings_, overrides_;
    const Model& model_;
    Pool pool_;
    std::vector<double> now_, then_, kp_, kd_, a_des_, unused_;
    bool busy_ = false;
};

void bind_balance(nb::module_& m);

}  // namespace poise
