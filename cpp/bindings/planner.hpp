#pragma once

#include "model.hpp"
#include "pool.hpp"

namespace poise {

// Plans of a controller of balance for the copies of a scene: the tasks of states and targets, what
// tracking wants, and the optimisation of each copy.
class Planner {
  public:
    Planner(nb::object model, int threads);

    // ask: an object with the names of PlanCall; limits: (m, 9) of joints whose gains grow beyond
    // their range. Accelerations (n, nv), torques (n, nv), told (n, told_size).
    nb::tuple plan(nb::object overrides, nb::object ask, std::int64_t n, nb::object q, nb::object v,
                   nb::object target_q, nb::object target_v, nb::object target_a, nb::object when,
                   nb::object gravity);

  private:
    void stiffen(const Rows& q, std::int64_t n, nb::handle ask);

    nb::object owner_;
    const Model& model_;
    Pool pool_;
    std::vector<double> now_, then_, kp_, kd_, a_des_, unused_;
    bool busy_ = false;
};

void bind_planner(nb::module_& m);

}  // namespace poise
