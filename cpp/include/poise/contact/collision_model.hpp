// Colliders, probes, pairs, joint limits and ground: plain data, compiled once by
// poise.simulation.contact.collision_model, read by every kernel.
//
// Every possible contact has a slot, so that its impulse is found again in the next step: a corner
// of a box on the ground has one, the four points of two boxes have four. The same holds for the
// bounds of joints.
#pragma once

#include <cstdint>

namespace poise {

enum class Solid : std::int32_t { sphere = 0, capsule = 1, box = 2, cylinder = 3, mesh = 4 };

// The hull of a mesh about its middle, the center of the box that holds it.
constexpr int kStarts = 16;  // along each axis of a face of the cube of directions
struct Hull {
    const double* corner;  // (corners, 3)
    // neighbours of corner k along edges: neighbour[neighbour_first[k] ..], its faces alike
    const std::int32_t *neighbour_first, *neighbour, *corner_face_first, *corner_face;
    const double* plane;  // (faces, 4): unit normal, distance from the middle
    // corners of face k, counter-clockwise from outside: loop[loop_first[k] ..]
    const std::int32_t *loop_first, *loop;
    const std::int32_t* start;  // (6, kStarts, kStarts) the corner furthest along a direction there
    std::int32_t corners, faces;
};

// A shape that touches. Its pose is given in its body's frame, or in the world's for body -1.
struct Collider {
    std::int32_t body;
    std::int32_t link;     // -1 - k is the obstacle k
    std::int32_t surface;  // row in the tables of friction and restitution
    Solid kind;
    double size[3];
    double p[3], E[4];
    double axis[3][3];  // of the shape, in the body's frame: what E turns x, y and z to
    double reach;       // radius of the ball about p that holds the shape
    double box[3];      // half sizes of the box along its axes that holds it
    const Hull* hull;   // of a mesh, else null
};

// A ball of a collider that meets the ground; a corner has radius 0. A rim is a circle about axis:
// its lowest point meets the ground, and turn says how far round from there this probe is.
struct Probe {
    std::int32_t collider;
    double point[3];  // in the body's frame
    double radius;
    double axis[3];      // of a rim, in the body's frame; 0 for a ball
    double rim;          // radius of the rim
    double turn;         // [rad]
    std::int32_t facet;  // of a ball on a height field: 0 the facet below, 1 and 2 those beside
};
// The probes of a mesh are places for the few corners of its hull that lie lowest in a step: this
// many for each facet below a corner.
constexpr int kHullProbes = 4;

// Two colliders that may meet, and how many points they may meet in. b may be an obstacle.
struct ColliderPair {
    std::int32_t a, b;
    std::int32_t slot, points;
};

// A ball in a body's frame that holds all its colliders; without any its reach is below 0.
struct Ball {
    double p[3], reach;
};

// Pairs first .. last - 1 are of the same two bodies; or groups of pairs of the same two trees,
// known by their roots. b may be -1: obstacles.
struct PairGroup {
    std::int32_t a, b, first, last;
};

// The limits of a joint: lower, upper; or swing, lower twist, upper twist about an axis of the
// child's frame.
struct Bound {
    std::int32_t body;
    double axis[3];
    double swing, lower, upper;
};

enum class GroundKind : std::int32_t { none = 0, plane = 1, field = 2 };

// A plane, or heights over a grid: height[row * cols + col] at (x0 + col dx, y0 + row dy).
struct Ground {
    GroundKind kind;
    double normal[3], offset;
    std::int32_t rows, cols;
    double x0, y0, dx, dy;
    const double* height;        // of the first copy of a tile
    std::int64_t height_stride;  // from copy to copy; 0: they share it. Lanes beyond the last copy
                                 // have heights, too
    const double* lowest;        // (copies or 1) of the field
    const double* highest;
};

enum class ContactModel : std::int32_t { none = 0, impulse = 1, penalty = 2 };

constexpr int kMostProjectiles = 32;

// Projectiles are free bodies at the end of the forest that wait to be thrown. The user's q and v
// end before them; their colliders, probes and pairs come last, one projectile after the other.
struct Projectiles {
    std::int32_t count = 0;
    std::int32_t nb, nq, nv;  // of the forest without them
    // how many colliders, probes and pairs there are with the first k projectiles
    std::int32_t colliders[kMostProjectiles + 1], probes[kMostProjectiles + 1],
        pairs[kMostProjectiles + 1];
};

struct CollisionModel {
    ContactModel model = ContactModel::none;
    Projectiles projectiles;
    Ground ground;
    const Collider* collider;
    const Probe* probe;  // sorted by body
    const ColliderPair* pair;
    const PairGroup* group;
    const PairGroup* tree_pair;
    const std::int32_t* root;  // (nb)
    const Ball* ball;          // (nb)
    const Bound* bound;
    // fixed boxes beside fixed box k: neighbor[neighbor_begin[k]] to neighbor[neighbor_begin[k +
    // 1]]
    const std::int32_t *neighbor, *neighbor_begin;
    std::int32_t colliders, probes, pairs, groups, tree_pairs, trees, bounds, surfaces;
    // slots: probes first, then pairs, then 3 for each bound (swing, lower, upper)
    std::int32_t pair_slots, slots;
    // (n or 1, surfaces) square roots of the coefficients; the last is the ground
    const double* friction_root;
    const double* restitution;  // (n or 1, surfaces)
    std::int64_t friction_stride, restitution_stride;
    std::int32_t sweeps;  // at most
    double tolerance;     // change of a velocity in a sweep that ends the solve [m/s, rad/s]
    // penalty: stiffness [N/m] and damping [N s/m] of a contact, friction's viscosity [N s/m]
    double stiffness, damping, viscosity;
};

}  // namespace poise
