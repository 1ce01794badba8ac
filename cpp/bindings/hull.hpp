// The hull of a mesh, read from Python's compiled form and checked; what the search needs besides.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "poise/contact/collision_model.hpp"

namespace poise {

class HullReader {
  public:
    // poise.simulation.contact.hull.HullMesh
    explicit HullReader(nb::handle source);
    const Hull& view() const { return view_; }

  private:
    void join(const std::vector<std::int32_t>& triangle, const std::vector<std::int32_t>& face);
    void measure_faces();
    std::int32_t climb(std::int32_t at, const double* d) const;
    void find_starts();

    std::vector<double> corner_, plane_;
    std::vector<std::int32_t> neighbour_first_, neighbour_, corner_face_first_, corner_face_;
    std::vector<std::int32_t> loop_first_, loop_, start_;
    Hull view_ = {};
};

}  // namespace poise
