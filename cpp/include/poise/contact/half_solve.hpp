// Rows of the contact problem in half-solved coordinates.
//
// The backward pass has factored the inertia, the drive's K included: with the response D of each
// joint, an impulse at a body travels up its path, and at every joint i leaves a force e_i on the
// joint's own directions. Then
//     J M^-1 J' = sum over the joints of both paths of e_i(a)' D_i^-1 e_i(b) = y(a).y(b),
//     y_i = R_i e_i with R_i' R_i = D_i^-1.
// So a row is a short vector y over the degrees of freedom of its path, the state of the solve is
// one vector u = sum of y l over all rows, and the velocity of a row is v0 + y.u. There is no pass
// downward, no matrix is built, and what rows do to each other is symmetric and positive
// semidefinite by construction.
//
// The entries of u are stored by chains: bodies that follow each other without a branch have theirs
// side by side, so a path is a few runs of numbers.
#pragma once

#include <cstring>

#include "poise/contact/response.hpp"
#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

// Where the degrees of freedom of bodies lie in u.
class PathLayout {
  public:
    // chains start at multiples of `align`
    PathLayout(const Forest& f, int align)
        : chain_(f.nb), place_(f.nb), chain_first_(f.nb), chain_parent_(f.nb), align_(align) {
        int chains = 0, at = 0;
        for (int i = 0; i < f.nb; ++i) {
            const Body& b = f.body[i];
            if (!continues(f, i)) {
                at = padded(at);
                chain_first_[chains] = at;
                chain_parent_[chains] = b.parent;
                chain_[i] = chains++;
            } else {
                chain_[i] = chain_[b.parent];
            }
            place_[i] = at;
            at += dof_count(b.kind);
        }
        size_ = padded(at);
        chains_ = chains;
    }
    int size() const { return size_; }
    int chains() const { return chains_; }
    int chain(int body) const { return chain_[body]; }
    int place(int body) const { return place_[body]; }
    int chain_first(int chain) const { return chain_first_[chain]; }
    int chain_parent(int chain) const { return chain_parent_[chain]; }
    // numbers of its chain that a path to this body takes
    int length(int body, Kind kind) const {
        return padded(place_[body] + dof_count(kind)) - chain_first_[chain_[body]];
    }

  private:
    // the only child of the body before it: depth-first order puts a chain side by side
    static bool continues(const Forest& f, int i) {
        const int p = f.body[i].parent;
        if (p < 0 || p != i - 1) return false;
        for (int k = i + 1; k < f.nb; ++k) {
            if (f.body[k].parent == p) return false;
            if (f.body[k].parent < p) break;
        }
        return true;
    }
    int padded(int n) const { return (n + align_ - 1) / align_ * align_; }

    Buffer<std::int32_t> chain_, place_, chain_first_, chain_parent_;
    int align_, size_ = 0, chains_ = 0;
};

// R of a joint, R' R = D^-1: lower triangles, and for a free joint one for each half.
template <class S>
struct JointRoot {
    S a[6], b[6];
};

// L with L L' = A: l00 l10 l11 l20 l21 l22.
template <class S>
POISE_INLINE void cholesky(const Sym3<S>& A, S* l) {
    using T = Element<S>;
    const S one(T(1)), tiny(T(1e-30));
    l[0] = square_root(larger(A.xx, tiny));
    const S i0 = one / l[0];
    l[1] = A.xy * i0;
    l[3] = A.xz * i0;
    l[2] = square_root(larger(A.yy - l[1] * l[1], tiny));
    const S i1 = one / l[2];
    l[4] = (A.yz - l[1] * l[3]) * i1;
    l[5] = square_root(larger(A.zz - l[3] * l[3] - l[4] * l[4], tiny));
}
template <class S>
POISE_INLINE JointRoot<S> root_of(Kind kind, const JointResponse<S>& g) {
    JointRoot<S> o;
    if (kind == Kind::ball) {
        cholesky(g.Di, o.a);
    } else if (kind == Kind::free) {
        cholesky(g.Ai, o.a);
        cholesky(g.Di, o.b);
    } else {
        o.a[0] = square_root(larger(g.d, S(Element<S>(0))));
    }
    return o;
}

// Vectors V of several directions at once times numbers S of one copy; or V = S.
template <class S, class V>
POISE_INLINE Vec3<V> times(const Mat3<S>& m, const Vec3<V>& a) {
    return {m.xx * a.x + m.xy * a.y + m.xz * a.z, m.yx * a.x + m.yy * a.y + m.yz * a.z,
            m.zx * a.x + m.zy * a.y + m.zz * a.z};
}
template <class S, class V>
POISE_INLINE Vec3<V> transposed_times(const Mat3<S>& m, const Vec3<V>& a) {
    return {m.xx * a.x + m.yx * a.y + m.zx * a.z, m.xy * a.x + m.yy * a.y + m.zy * a.z,
            m.xz * a.x + m.yz * a.y + m.zz * a.z};
}
template <class S, class V>
POISE_INLINE Vec3<V> across(const Vec3<S>& r, const Vec3<V>& f) {
    return {r.y * f.z - r.z * f.y, r.z * f.x - r.x * f.z, r.x * f.y - r.y * f.x};
}
template <class S, class V>
POISE_INLINE V along(const Vec3<S>& s, const Vec3<V>& f) {
    return s.x * f.x + s.y * f.y + s.z * f.z;
}
// L' e
template <class S, class V>
POISE_INLINE void whiten(const S* l, const Vec3<V>& e, V* y) {
    y[0] = l[0] * e.x + l[1] * e.y + l[3] * e.z;
    y[1] = l[2] * e.y + l[4] * e.z;
    y[2] = l[5] * e.z;
}

// A joint on the way up: w is what its body received about the joint, j what acts in the joint.
// Writes the joint's part of y and returns what the parent receives, about this joint.
template <class S, class V>
POISE_INLINE Wrench<V> half_step(Kind kind, const Mat3<S>& R, const JointResponse<S>& g,
                                 const JointRoot<S>& root, const Wrench<V>& w, const Vec3<V>& j,
                                 V* y) {
    if (kind == Kind::ball) {
        const Vec3<V> e = w.n + j;
        whiten(root.a, e, y);
        const Vec3<V> n = transposed_times(g.P, e), f = transposed_times(g.G, e);
        return {n - j, w.f - f};
    }
    if (kind == Kind::free) {
        whiten(root.a, w.f, y);
        whiten(root.b, w.n - times(g.G, w.f), y + 3);
        return w;  // a root: nothing is above it
    }
    const V e = along(axis_of(R), kind == Kind::hinge ? w.n : w.f) + j.x;
    y[0] = root.a[0] * e;
    return {{w.n.x - g.n.x * e, w.n.y - g.n.y * e, w.n.z - g.n.z * e},
            {w.f.x - g.f.x * e, w.f.y - g.f.y * e, w.f.z - g.f.z * e}};
}

// A run of numbers of u.
struct Run {
    std::int32_t first, count;
};

// One row of every copy of a tile, each at bodies of its own: three directions of a contact, or one
// of a joint.
template <class S>
struct Slot {
    std::int32_t row[Traits<S>::lanes];     // in the list of contacts or limits; -1: none
    std::int32_t island[Traits<S>::lanes];  // first root of the row's island
    bool shared;                            // the same row in all copies
    MaskOf<S> on;
    MaskOf<S> live, going;   // in an island that is solved, or whose sweeps go on
    S exit;                  // change of a velocity in a sweep that ends them
    std::int32_t run, runs;  // where u is read and written
    std::int64_t y;          // where its numbers begin
    std::int32_t size;       // numbers of each direction
    Vec3<S> t, u;            // tangents along which the response is diagonal
    S v[3];                  // velocity that is missing, before this solve [m/s]
    S l[3], push;            // impulses
    S l_before[3];           // before the present sweep
    S mu;
    S inv_n, at, au, inv_t, inv_u;  // the own response: see FrictionCone
    S st, su;
    S soft, slick;
    S root;  // of the equation of a sliding contact: the last sweep's
    S weight;
};

// A row that a copy takes into its next free slot.
struct Taken {
    std::int32_t row, lane, place, island;
};

template <class S>
struct HalfSolve {
    static constexpr int lanes = Traits<S>::lanes;
    // numbers of one direction lie side by side for one copy, so that they can be taken four at a
    // time; in lanes the three directions of a number do, and they are taken two at a time
    static constexpr int kAlign = lanes == 1 ? 4 : 2;

    PathLayout layout;
    Buffer<JointRoot<S>> root;     // (nb)
    Buffer<std::uint8_t> rooted;   // (nb) whether it is there
    Buffer<S> u, u_push;           // (layout.size)
    Buffer<S> u_before, u_change;  // before the present sweep; by the last one
    Buffer<Slot<S>> slot;          // contacts
    Buffer<Slot<S>> limit;         // joints
    Buffer<Run> run;
    Buffer<S> y;
    Buffer<Taken> taken{64};
    Buffer<std::int32_t> slot_of;   // (contacts, lanes) -1: none
    Buffer<std::int32_t> limit_of;  // (limits, lanes)
    Buffer<std::int32_t> length;    // (chains) of the present slot
    Buffer<std::int32_t> body;      // (nb) of the present slot, from the leaves to the roots
    Buffer<std::uint8_t> reached;   // (nb)
    Buffer<Wrench<S>> W;            // (3 nb) impulses on their way up the present slot's bodies
    Buffer<Vec3<S>> j;              // (nb) and in the joints
    Buffer<Wrench<Pack<Element<S>, 4>>> W4;  // (nb) one copy: three directions at once
    int slots = 0, limits = 0, runs = 0;
    std::int64_t used = 0;

    explicit HalfSolve(const Forest& f)
        : layout(f, kAlign), root(f.nb), rooted(f.nb), u(layout.size()), u_push(layout.size()),
          u_before(layout.size()), u_change(layout.size()), slot(16), limit(16), run(64), y(1024),
          slot_of(64), limit_of(16), length(f.nb), body(f.nb), reached(f.nb), W(3 * f.nb), j(f.nb),
          W4(lanes == 1 ? f.nb : 1) {}
};

}  // namespace poise::inline POISE_ISA
