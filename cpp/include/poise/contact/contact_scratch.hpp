// Buffers of a step's contact: rows, solver, and what the user sees of it.
#pragma once

#include "poise/contact/constraints.hpp"
#include "poise/contact/half_solve.hpp"
#include "poise/contact/islands.hpp"
#include "poise/contact/newton.hpp"
#include "poise/phase_timer.hpp"

namespace poise::inline POISE_ISA {

// How often joints that turn too fast are looked for.
constexpr int kBrakeRounds = 2;

// Impulses on their way: of the velocities that stay, or of the pseudo velocities.
template <class S>
struct Flow {
    Buffer<Wrench<S>> W;  // (nb) received with all that hangs on it
    Buffer<Vec3<S>> j;    // (nb) in the joint
    Buffer<Motion<S>> m;  // (nb) motion caused
    explicit Flow(int nb) : W(nb), j(nb), m(nb) {}
};

template <class S>
struct ContactScratch {
    Buffer<JointResponse<S>> give;
    Buffer<Motion<S>> before, base;  // (nb) motion before the step, and after it without contact
    Buffer<std::uint8_t> marked;     // (nb) on the way from a root to a row
    Buffer<std::int32_t> path;       // marked bodies in their order
    Buffer<Contact<S>> contact;
    Buffer<LimitRow<S>> limit;
    Buffer<Vec3<S>> center, axis;  // (colliders)
    Buffer<S> speed;               // (colliders) of their fastest point, without contact [m/s]
    Buffer<Vec3<S>> velocity;      // (colliders) of their centers [m/s]
    Buffer<S> spin;                // (colliders) by which a point may be faster than that [m/s]
    Buffer<Vec3<S>> middle;        // (nb) of the ball that holds a body's colliders
    Buffer<S> quickness;           // (nb) of the fastest point in that ball [m/s]
    Buffer<S> tree_reach;          // (nb) of the ball about a root's middle that holds its tree [m]
    Buffer<S> tree_quickness;      // (nb) of the fastest point in that ball [m/s]
    Buffer<Quat<S>> turn;          // (nb) of a body in this step
    Buffer<Vec3<S>> went;          // (nb) way of its joint [m]
    Buffer<S> dv, dv_first, push;  // (nv)
    Flow<S> real, apart;
    HalfSolve<S> half;
    Islands<S> islands;
    // (nb, at the roots) islands that are solved, whose sweeps go on, that changed in this sweep,
    // with penetration to correct, with a bounce; trees with a body that turns, or still too deep
    Buffer<MaskOf<S>> live, going, changed, deep, bounced, turns, stuck_trees, found, joined;
    // of an island: the fastest velocity before the step, what its rows miss, and the change of a
    // velocity in a sweep that ends the sweeps [m/s, rad/s]
    Buffer<S> fastest, missing, exit;
    Buffer<MaskOf<S>> asked, swift;  // whose impulses are asked for; faster than kFastIsland
    Buffer<S> free_work, own_work;   // of its impulses, without and by themselves
    Buffer<S> energy[3], share;      // of an island's bounce
    NewtonScratch newton;
    PhaseTimer timer;
    Buffer<std::int32_t> impact{16};  // contacts that an impact may come to
    Buffer<S> impact_response{16};    // of their normal velocities to their normal impulses
    Buffer<MaskOf<S>> touched;        // (nb) copies in which a contact will act on a body
    MaskOf<S> alive;                  // copies that have not diverged: the others have no rows
    MaskOf<S> moved;                  // copies in which bodies move by more than their velocities
    MaskOf<S> stuck;                  // copies in which that did not take them out
    MaskOf<S> fast;                   // copies in which something may pass a ridge unseen
    int contacts = 0, limits = 0, marks = 0;

    // room for all pairs of a character; of the many pairs of a crowd few are near in a step
    static constexpr int kContacts = 1024;
    static int first_contacts(const CollisionModel& x) {
        const int all = x.pair_slots + x.probes + 1;
        return all < kContacts ? all : kContacts;
    }
    Contact<S>& add_contact() {
        contact.reserve(contacts + 1);
        return contact[contacts++];
    }

    ContactScratch(const Forest& f, const CollisionModel& x)
        : give(f.nb), before(f.nb), base(f.nb), marked(f.nb), path(f.nb),
          contact(first_contacts(x)), limit(3 * x.bounds + kBrakeRounds * f.nb + 1),
          center(x.colliders + 1), axis(x.colliders + 1), speed(x.colliders + 1),
          velocity(x.colliders + 1), spin(x.colliders + 1), middle(f.nb), quickness(f.nb),
          tree_reach(f.nb), tree_quickness(f.nb), turn(f.nb), went(f.nb), dv(f.nv), dv_first(f.nv),
          push(f.nv), real(f.nb), apart(f.nb), half(f), islands(f.nb), live(f.nb), going(f.nb),
          changed(f.nb), deep(f.nb), bounced(f.nb), turns(f.nb), stuck_trees(f.nb), found(f.nb),
          joined(f.nb), fastest(f.nb), missing(f.nb), exit(f.nb), asked(f.nb), swift(f.nb),
          free_work(f.nb), own_work(f.nb),
          energy{Buffer<S>(f.nb), Buffer<S>(f.nb), Buffer<S>(f.nb)}, share(f.nb),
          newton(f.nb, half.layout.size()), touched(f.nb), alive(constant_mask<S>(true)) {}
};

// Which slots of a tile hold impulses.
class Kept {
  public:
    void clear() { count_ = 0; }
    void add(std::int32_t slot) {
        slots_.reserve(count_ + 1);
        slots_[count_++] = slot;
    }
    int count() const { return count_; }
    std::int32_t operator[](int k) const { return slots_[k]; }

  private:
    Buffer<std::int32_t> slots_{32};
    int count_ = 0;
};

// The contacts of a tile's last step.
template <class S>
class Report {
  public:
    struct Row {
        std::int32_t collider, other;
        MaskOf<S> on;
        Vec3<S> at, n, impulse;
        S gap;
    };
    static constexpr std::size_t kReserved = 16;
    void clear() { count_ = 0; }
    void forget(int lane) {
        for (int k = 0; k < count_; ++k) put(rows_[k].on, lane, false);
    }
    void add(const Contact<S>& a, const MaskOf<S>& on, const Vec3<S>& impulse) {
        rows_.reserve(count_ + 1);
        rows_[count_++] = {a.collider, a.other_collider, on, a.at, a.n, impulse, a.gap};
    }
    int count() const { return count_; }
    const Row& operator[](int k) const { return rows_[k]; }

  private:
    Buffer<Row> rows_{kReserved};
    int count_ = 0;
};

}  // namespace poise::inline POISE_ISA
