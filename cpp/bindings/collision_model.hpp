// The collision model of a world, read from Python's compiled form and checked.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "model.hpp"

namespace poise {

class CollisionModelReader {
  public:
    // None, or poise.simulation.contact.CollisionModel
    const CollisionModel& read(nb::handle source, const Model& model, std::int64_t n);
    const CollisionModel& view() const { return view_; }
    // where the given pairs touch in the next step
    GivenContact* given() { return given_.data(); }

  private:
    void read_colliders(nb::object colliders, const Model& model);
    void hold_bodies(int nb);
    void read_probes(nb::object probes);
    void read_pairs(nb::handle source, std::int64_t n);
    void read_bounds(nb::object bounds, const Model& model);
    void read_ground(nb::object ground);
    void read_projectiles(nb::handle source, const Model& model);

    CollisionModel view_ = {};
    std::vector<Collider> collider_;
    std::vector<Probe> probe_;
    std::vector<ColliderPair> pair_;
    std::vector<PairGroup> group_, tree_pair_;
    std::vector<std::int32_t> root_;
    std::vector<Ball> ball_;
    std::vector<Bound> bound_;
    std::vector<GivenContact> given_;
    std::vector<double> height_, friction_, restitution_;
};

}  // namespace poise
