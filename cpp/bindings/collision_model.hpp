// The collision model of a world, read from Python's compiled form and checked.
#pragma once

#include <memory>
#include <vector>

#include "arrays.hpp"
#include "hull.hpp"
#include "model.hpp"

namespace poise {

class CollisionModelReader {
  public:
    // None, or poise.simulation.contact.CollisionModel
    const CollisionModel& read(nb::handle source, const Model& model, std::int64_t n);
    const CollisionModel& view() const { return view_; }
    // colliders alone, of nb bodies: poise.simulation.contact.colliders.Colliders
    const CollisionModel& read_shapes(nb::object colliders, int nb);
    // friction of the surfaces in some copies, (count, surfaces); each copy has a row from now on
    void write_friction(const double* rows, std::int64_t stride, const Copies& copies,
                        std::int64_t n);

  private:
    void read_colliders(nb::object colliders, const Model& model);
    void collect(nb::object colliders, int nb);
    void find_neighbors();
    void hold_bodies(int nb);
    void check_hull_probes() const;
    void read_probes(nb::object probes);
    void read_pairs(nb::handle source);
    void read_bounds(nb::object bounds, const Model& model);
    void read_ground(nb::object ground, std::int64_t n);
    void read_projectiles(nb::handle source, const Model& model);

    CollisionModel view_ = {};
    std::vector<Collider> collider_;
    std::vector<Probe> probe_;
    std::vector<ColliderPair> pair_;
    std::vector<PairGroup> group_, tree_pair_;
    std::vector<std::int32_t> root_, neighbor_, neighbor_begin_;
    std::vector<Ball> ball_;
    std::vector<Bound> bound_;
    std::vector<std::unique_ptr<HullReader>> hull_;
    std::vector<double> height_, lowest_, highest_, friction_, restitution_;
};

// of two colliders, as convex solids: poise.simulation.contact.convex.touches
nb::tuple collide(nb::object colliders, nb::object poses, double near);

}  // namespace poise
