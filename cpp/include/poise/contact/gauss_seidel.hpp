// Block Gauss-Seidel on the contacts of a step, in half-solved coordinates (half_solve.hpp).
//
// A sweep visits the contacts in a fixed order and solves each exactly in its own response,
// friction cone included (friction_cone.hpp), then the joints at their bounds. Only rows that
// approach or push take part; the others are looked at afterwards and join if they were missed.
// Islands (islands.hpp) whose impulses of the step before are still right take no sweep at all; the
// others end on their own.
//
// In lanes every copy has its own rows: the k-th row of a tile is another contact in each copy, so
// a copy waits neither for rows of its neighbours nor is it changed by them.
#pragma once

#include <array>
#include <cstring>

#include "poise/contact/contact_scratch.hpp"
#include "poise/contact/friction_cone.hpp"

namespace poise::inline POISE_ISA {

// Rows slower than this towards their bound take part from the start [m/s, rad/s].
constexpr double kApproach = 0.02;
// Rows that did not take part join when they are missed by more than this [m/s, rad/s]; in fast
// islands by more than the second.
constexpr double kMissed = 0.005;
constexpr double kMissedFast = 0.2;
// Of the tolerance: at rest, in double precision.
constexpr double kRestShare = 1e-3;
// Islands whose rows miss less than kCalm and that are slower than kSlow are nearly at rest [m/s]:
// they are solved further, to this part of what they may miss without a sweep.
constexpr double kCalm = 1e-3;
constexpr double kSlow = 0.02;
constexpr double kExit = 0.8;
// Of the fastest velocity: what a row may miss without a sweep.
constexpr double kStirring = 0.01;
// How much further from converged an island may be for each m/s of its fastest velocity.
constexpr double kMoving = 3.0;
// Of the sweeps: what islands in which something is faster than this [m/s] get of them, but at
// least kLeastSweeps. Their impulses change from step to step.
constexpr double kFastIsland = 0.5;
constexpr double kFastShare = 0.3;
constexpr int kLeastSweeps = 3;
// Of the fastest velocity before the step: what changes by more in a sweep gets all of them.
constexpr double kMuch = 0.2;
// Sweeps between two extrapolations, and the largest contraction that one of them trusts.
constexpr int kExtrapolate = 3;
constexpr double kLargestContraction = 0.9;
// Pseudo velocities need not be more exact than this [m/s].
constexpr double kPushTolerance = 1e-3;
constexpr int kPushSweeps = 6;
// Sweeps of rounds after the first: rows that joined late, joints that turn too fast.
constexpr int kLateSweeps = 4;
// Of the tolerance, and of the sweeps the inverse, where a solve has to be thorough.
constexpr double kThorough = 0.1;
// What answers an impulse by more has almost no inertia [1/kg].
constexpr double kMostResponse = 1e15;
// How often rows may join.
constexpr int kJoinRounds = 4;

template <class S>
class GaussSeidel {
  public:
    using T = Element<S>;
    using Masks = Buffer<MaskOf<S>>;
    static constexpr int lanes = Traits<S>::lanes;

    // thorough: joint accelerations are commanded, and whatever the solve leaves is amplified by
    // joints that do not give way.
    GaussSeidel(const Forest& forest, const CollisionModel& model, const Work<S>* w,
                ContactScratch<S>& scratch, bool thorough)
        : f(forest), x(model), work(w), c(scratch), h(scratch.half), islands(scratch.islands),
          thorough_(thorough), tolerance_((thorough ? kThorough : 1.0) * model.tolerance),
          sweeps_(thorough ? static_cast<int>(model.sweeps / kThorough) : model.sweeps) {}

    // Bodies on the way to a row; islands.
    void prepare() {
        islands.find(f.nb, x.root, c.contact.data(), c.contacts);
        for (int i = 0; i < f.nb; ++i) c.marked[i] = h.rooted[i] = h.reached[i] = 0;
        for (int k = 0; k < c.contacts; ++k) {
            mark(c.contact[k].body);
            mark(c.contact[k].other);
        }
        for (int k = 0; k < c.limits; ++k) mark(c.limit[k].body);
        list_marked();
        h.slots = h.limits = h.runs = 0;
        h.used = 0;
        h.slot_of.reserve(static_cast<std::size_t>(c.contacts + 1) * lanes);
        for (int k = 0; k < c.contacts * lanes; ++k) h.slot_of[k] = -1;
        forget_limits(0);
        for (int k = 0; k < h.layout.chains(); ++k) h.length[k] = 0;
    }

    // Some copies are solved anew, with other responses of their joints: their rows give up their
    // slots.
    void forget(const MaskOf<S>& some) {
        h.slots = leave(some, h.slot, h.slots, h.slot_of.data());
        h.limits = leave(some, h.limit, h.limits, h.limit_of.data());
        h.used = h.runs = 0;
        if (h.slots) keep_up_to(h.slot[h.slots - 1], 3);
        if (h.limits) keep_up_to(h.limit[h.limits - 1], 1);
        for (int i = 0; i < f.nb; ++i) h.rooted[i] = 0;
    }

    // Limits from row `first` on have come while others were solved: what was found so far stays.
    void prepare_more(int first) {
        for (int k = first; k < c.limits; ++k) mark(c.limit[k].body);
        list_marked();
        forget_limits(first);
    }

    // Impulses of all islands of some copies; joint velocities in dv.
    void solve(const MaskOf<S>& copies, S* dv) {
        islands.fill(c.found, copies);
        solve(c.found, dv);
    }
    // Of some islands. late: impulses have not changed since a solve.
    void solve(const Masks& some, S* dv, bool late = false) {
        for (int t = 0; t < islands.trees(); ++t) c.asked[islands.tree(t)] = some[islands.tree(t)];
        if (!late) respond(c.real, dv, false);
        find_unsettled();
        // what will be swept is looked at afterwards
        for (int t = 0; t < islands.trees(); ++t) {
            const int tree = islands.tree(t);
            c.found[tree] = c.asked[tree] & negate(c.live[tree]);
        }
        const bool weaker = weaken(c.found, dv);
        keep_live(c.asked);
        bool swept = false;
        for (int round = 0; round < kJoinRounds && any(islands.copies(c.live)); ++round) {
            const bool more = join(round);
            if (round && !more) break;
            choose_slots();
            c.timer.mark(Phase::responses);
            load();
            sweep(late || round ? late_sweeps() : sweeps_);
            c.timer.mark(Phase::iterations);
            if ((thorough_ || x.trees > 1) && x.model == ContactModel::impulse) settle();
            c.timer.mark(Phase::newton);
            store();
            respond(c.real, dv, false);
            find_missing();
            keep_live(c.found);
            swept = true;
        }
        if (swept ? weaken(c.asked, dv) : weaker) find_missing();
    }

    // Pseudo impulses of some islands; push velocities in dv.
    void solve_push(const Masks& some, S* dv) {
        respond_push(dv);
        islands.fill(c.live, constant_mask<S>(true));
        keep_live(some);
        for (int round = 0; round < kJoinRounds && any(islands.copies(c.live)); ++round) {
            join_push(round);
            if (round) keep_live(c.joined);
            if (!any(islands.copies(c.live))) return;
            choose_slots();
            load_push();
            sweep_push();
            store_push();
            respond_push(dv);
        }
    }

    // Motions, joint velocities and velocities of the rows with the present impulses.
    void update(S* dv) {
        respond(c.real, dv, false);
        find_missing();
    }

    // Normal velocity of a contact with the present impulses; solve() or update() came before.
    S normal_velocity(const Contact<S>& a) const { return dot(a.n, a.v); }

    // Natural residuals of the contacts with the present impulses, into the profile. Rows that took
    // no part were right: what they miss is their velocity.
    void profile_residuals(int copies) {
        StepProfile& p = *c.timer.profile;
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& a = c.contact[k];
            const Vec3<S> v = velocity(a);
            const S vn = dot(a.n, v) - a.bound, vt = dot(a.t, v), vu = dot(a.u, v);
            for (int lane = 0; lane < lanes && lane < copies; ++lane) {
                if (!get(a.on, lane)) continue;
                ++p.contacts;
                const int slot = h.slot_of[k * lanes + lane];
                p.solved += slot >= 0;
                NewtonRow& o = c.newton.probe;
                o.l[0] = double(get(a.ln, lane));
                o.l[1] = double(get(a.lt, lane));
                o.l[2] = double(get(a.lu, lane));
                o.now[0] = double(get(vn, lane));
                o.now[1] = double(get(vt, lane));
                o.now[2] = double(get(vu, lane));
                o.mu = double(get(a.mu, lane));
                o.joint = false;
                // without a response of its own: any weight that is small against l
                o.R = kSoft * (slot >= 0 ? double(get(h.slot[slot].weight, lane)) : 1e-3);
                count_residual(p, Newton::natural_residual(o));
            }
        }
    }

    // Rate of a limit's slack under a set of motions.
    S slack_rate(const LimitRow<S>& a, const Motion<S>* m) const {
        const Body& b = f.body[a.body];
        Motion<S> p = zero_motion<S>();
        if (b.parent >= 0) p = shift(m[b.parent], work[a.body].r);
        if (b.kind == Kind::ball) return dot(a.g, m[a.body].al - p.al);
        const Vec3<S> d = b.kind == Kind::hinge ? m[a.body].al - p.al : m[a.body].a - p.a;
        return a.g.x * dot(axis_of(work[a.body].R), d);
    }

  private:
    // ---- responses along the whole tree

    void mark(int i) {
        for (; i >= 0 && !c.marked[i]; i = f.body[i].parent) c.marked[i] = 1;
    }
    void list_marked() {
        c.marks = 0;
        for (int i = 0; i < f.nb; ++i)
            if (c.marked[i]) c.path[c.marks++] = i;
    }
    static void add(Wrench<S>& a, const Wrench<S>& b) { a = a + b; }

    // Motions and joint velocities caused by the impulses, all of them: momentum is kept whatever
    // the solve leaves.
    void respond(Flow<S>& w, S* dv, bool push) {
        for (int k = 0; k < c.marks; ++k) {
            w.W[c.path[k]] = zero_wrench<S>();
            w.j[c.path[k]] = zero3<S>();
        }
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& a = c.contact[k];
            if (!any(S(T(0)) < (push ? a.push : a.ln))) continue;
            const Vec3<S> p = push ? a.push * a.n : a.ln * a.n + a.lt * a.t + a.lu * a.u;
            add(w.W[a.body], impulse_at(a.r, p));
            if (a.other >= 0) add(w.W[a.other], impulse_at(a.r_other, zero3<S>() - p));
        }
        for (int k = 0; k < c.limits; ++k) {
            const LimitRow<S>& a = c.limit[k];
            if (!any(S(T(0)) < (push ? a.push : a.l))) continue;
            w.j[a.body] = w.j[a.body] + (push ? a.push : a.l) * a.g;
        }
        for (int k = c.marks - 1; k >= 0; --k) {
            const int i = c.path[k], p = f.body[i].parent;
            if (p >= 0)
                add(w.W[p], shift(up(f.body[i], work[i].R, c.give[i], w.W[i], w.j[i]), work[i].r));
        }
        rates(w, dv);
    }
    POISE_NOINLINE void rates(Flow<S>& w, S* dv) {
        for (int i = 0; i < f.nb; ++i) {
            const Body& b = f.body[i];
            Motion<S> m = zero_motion<S>();
            if (b.parent >= 0) m = shift(w.m[b.parent], work[i].r);
            const Wrench<S> W = c.marked[i] ? w.W[i] : zero_wrench<S>();
            const Vec3<S> j = c.marked[i] ? w.j[i] : zero3<S>();
            const Motion<S> o = w.m[i] = down(b, work[i].R, c.give[i], m, W, j);
            if (b.kind == Kind::free) {
                poise::POISE_ISA::store(dv + b.v, o.a);
                poise::POISE_ISA::store(dv + b.v + 3, tmul(work[i].R, o.al));
            } else if (b.kind == Kind::ball) {
                poise::POISE_ISA::store(dv + b.v, tmul(work[i].R, o.al - m.al));
            } else {
                const Vec3<S> d = b.kind == Kind::hinge ? o.al - m.al : o.a - m.a;
                dv[b.v] = dot(axis_of(work[i].R), d);
            }
        }
    }

    Vec3<S> velocity(const Contact<S>& a) const {
        Vec3<S> v = point_velocity(c.base[a.body] + c.real.m[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(c.base[a.other] + c.real.m[a.other], a.r_other);
        return v;
    }
    S rate(const LimitRow<S>& a) const {
        return slack_rate(a, c.base.data()) + slack_rate(a, c.real.m.data());
    }
    bool pushes() const {
        const S zero(T(0));
        auto on = constant_mask<S>(false);
        for (int k = 0; k < c.contacts; ++k) on = on | (zero < c.contact[k].push);
        for (int k = 0; k < c.limits; ++k) on = on | (zero < c.limit[k].push);
        return any(on);
    }
    // pseudo velocities: those of the rows, beyond what they ask for
    void respond_push(S* dv) {
        if (pushes()) {
            respond(c.apart, dv, true);
        } else {
            for (int i = 0; i < f.nb; ++i) c.apart.m[i] = zero_motion<S>();
            for (int k = 0; k < f.nv; ++k) dv[k] = S(T(0));
        }
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            Vec3<S> v = point_velocity(c.apart.m[a.body], a.r);
            if (a.other >= 0) v = v - point_velocity(c.apart.m[a.other], a.r_other);
            a.push_v = dot(a.n, v) - a.push_bound;
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.push_v = slack_rate(a, c.apart.m.data()) - a.push_bound;
        }
    }

    // ---- who takes part

    int late_sweeps() const { return thorough_ || sweeps_ < kLateSweeps ? sweeps_ : kLateSweeps; }
    int push_sweeps() const { return thorough_ || sweeps_ < kPushSweeps ? sweeps_ : kPushSweeps; }
    S tolerance() const { return S(T(tolerance_)); }
    // Impulses that are off by less than this need no sweep. Bodies at rest come this near over
    // several steps, as far as the precision of the numbers allows.
    double rest_tolerance() const { return (sizeof(T) == 8 ? kRestShare : 1.0) * tolerance_; }

    // The fastest velocity of a body before the step, in c.fastest.
    void find_speeds() {
        islands.fill(c.fastest, S(T(0)));
        for (int i = 0; i < f.nb; ++i) {
            const Motion<S>& m = c.before[i];
            S& most = c.fastest[x.root[i]];
            most = larger(most, dot(m.al, m.al) + dot(m.a, m.a));
        }
        islands.unite_largest(c.fastest);
        for (int t = 0; t < islands.trees(); ++t) {
            S& most = c.fastest[islands.tree(t)];
            most = square_root(most);
        }
    }
    // How much a row may miss without a sweep: a hundredth of the fastest velocity, between the two
    // tolerances. What is in motion is not disturbed by it, and what comes to rest does so to the
    // end.
    S settled_within(const S& speed) const {
        const S least{T(rest_tolerance())}, most = tolerance(), some = S(T(kStirring)) * speed;
        if (thorough_) return least;
        return select(some < least, least, select(some < most, some, most));
    }

    // Islands in which the present impulses do not satisfy their rows, in c.live. They lie in their
    // cones: the residual of a contact that pushes is at most the velocity that is missing.
    void find_unsettled() {
        const S zero(T(0));
        find_speeds();
        islands.fill(c.live, constant_mask<S>(false));
        islands.fill(c.missing, zero);
        islands.fill(c.free_work, zero);
        islands.fill(c.own_work, zero);
        for (int t = 0; t < islands.trees(); ++t)
            c.exit[islands.tree(t)] = settled_within(c.fastest[islands.tree(t)]);
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const int tree = x.root[a.body];
            const S tol = c.exit[tree];
            a.v = velocity(a);
            const S vn = dot(a.n, a.v) - a.bound + a.soft * a.ln;
            const S vt = dot(a.t, a.v) + a.slick * a.lt, vu = dot(a.u, a.v) + a.slick * a.lu;
            const auto pushes = zero < a.ln;
            add_work(a, pushes);
            const auto open = negate(pushes) & (-tol < vn);
            const S missing2 = vn * vn + vt * vt + vu * vu;
            const auto still = pushes & (missing2 < tol * tol);
            c.live[tree] = c.live[tree] | (a.on & negate(open | still));
            c.missing[tree] =
                larger(c.missing[tree], select(a.on & (pushes | (vn < zero)), missing2, zero));
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            const int tree = x.root[a.body];
            const S tol = c.exit[tree];
            a.v = rate(a) - a.bound;
            const auto pushes = zero < a.l;
            add_work(a, pushes);
            const auto right = (-tol < a.v) & (negate(pushes) | (a.v < tol));
            c.live[tree] = c.live[tree] | (a.on & negate(right));
            c.missing[tree] =
                larger(c.missing[tree], select(a.on & (pushes | (a.v < zero)), a.v * a.v, zero));
        }
        islands.unite(c.live);
        islands.unite_largest(c.missing);
        for (int t = 0; t < islands.trees(); ++t) {
            const int tree = islands.tree(t);
            // what hardly moves is solved so far that the next steps need no sweep
            const auto calm = c.missing[tree] < S(T(kCalm * kCalm));
            const auto slow = constant_mask<S>(thorough_) | (c.fastest[tree] < S(T(kSlow)));
            const S still = S(T(kExit)) * settled_within(c.fastest[tree]);
            const S near = select(slow, still, tolerance());
            // and what moves no further than its speed deserves
            const S some = S(T(thorough_ ? 0.0 : kMoving)) * c.fastest[tree] * tolerance();
            c.exit[tree] = select(calm, near, larger(some, tolerance()));
            c.swift[tree] = constant_mask<S>(!thorough_) & (S(T(kFastIsland)) < c.fastest[tree]);
        }
    }
    // Impulses l add energy if l'(c + G l / 2) > 0, c the velocities that are missing without them:
    // those of the step before may, and what few sweeps leave of them. Such islands of some take
    // the multiple of l that adds least; whether there are any. The work of l has been found.
    bool weaken(const Masks& some, S* dv) {
        if (x.model == ContactModel::penalty) return false;
        const S zero(T(0)), half(T(0.5)), one(T(1));
        islands.unite_sums(c.free_work);
        islands.unite_sums(c.own_work);
        bool gain = false;
        for (int t = 0; t < islands.trees(); ++t) {
            const int tree = islands.tree(t);
            const auto gains = some[tree] & (zero < c.free_work[tree] + half * c.own_work[tree]);
            const S best = -c.free_work[tree] / larger(c.own_work[tree], S(T(1e-30)));
            c.share[tree] = select(gains, select(zero < best, best, zero), one);
            gain = gain || any(gains);
        }
        if (!gain) return false;
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S share = c.share[x.root[a.body]];
            a.ln = share * a.ln;
            a.lt = share * a.lt;
            a.lu = share * a.lu;
        }
        for (int k = 0; k < c.limits; ++k)
            c.limit[k].l = c.share[x.root[c.limit[k].body]] * c.limit[k].l;
        // not a multiple of what they brought about: to the last bit the same as whenever another
        // copy has all responses found again
        respond(c.real, dv, false);
        return true;
    }
    // a.v has been found
    void add_work(const Contact<S>& a, const MaskOf<S>& pushes) {
        if (!any(pushes)) return;
        const int tree = x.root[a.body];
        const Vec3<S> l = a.ln * a.n + a.lt * a.t + a.lu * a.u;
        Vec3<S> v = point_velocity(c.real.m[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(c.real.m[a.other], a.r_other);
        const S own = dot(l, v);
        c.free_work[tree] = c.free_work[tree] + (dot(l, a.v) - a.ln * a.bound - own);
        c.own_work[tree] = c.own_work[tree] + own;
    }
    void add_work(const LimitRow<S>& a, const MaskOf<S>& pushes) {
        if (!any(pushes)) return;
        const int tree = x.root[a.body];
        const S own = a.l * slack_rate(a, c.real.m.data());
        c.free_work[tree] = c.free_work[tree] + (a.l * a.v - own);
        c.own_work[tree] = c.own_work[tree] + own;
    }
    // of a row that takes no part
    S missed(int body) const {
        return select(c.swift[x.root[body]], S(T(kMissedFast)), S(T(kMissed)));
    }

    // Islands in which a row that did not take part is missed, in c.found.
    void find_missing() {
        const S zero(T(0));
        islands.fill(c.found, constant_mask<S>(false));
        islands.fill(c.free_work, zero);
        islands.fill(c.own_work, zero);
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.v = velocity(a);
            add_work(a, zero < a.ln);
            find_outside(a.on & (dot(a.n, a.v) - a.bound < -missed(a.body)), a.body,
                         h.slot_of.data() + k * lanes);
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.v = rate(a) - a.bound;
            add_work(a, zero < a.l);
            find_outside(a.on & (a.v < -missed(a.body)), a.body, h.limit_of.data() + k * lanes);
        }
        islands.unite(c.found);
    }
    void find_outside(const MaskOf<S>& some, int body, const std::int32_t* slot) {
        each_lane(some, [&](int lane) {
            if (slot[lane] < 0) put(c.found[x.root[body]], lane, true);
        });
    }
    // Of the islands that are solved those that are in a mask go on.
    void keep_live(const Masks& some) {
        for (int t = 0; t < islands.trees(); ++t) {
            auto& live = c.live[islands.tree(t)];
            live = live & some[islands.tree(t)];
        }
    }
    // The slots of islands that are solved.
    void choose_slots() {
        for (int k = 0; k < h.slots; ++k) h.slot[k].live = in(h.slot[k], c.live);
        for (int k = 0; k < h.limits; ++k) h.limit[k].live = in(h.limit[k], c.live);
    }
    MaskOf<S> in(const Slot<S>& o, const Masks& some) const {
        if (islands.single()) return o.on & some[islands.tree(0)];
        auto found = constant_mask<S>(false);
        for (int lane = 0; lane < lanes; ++lane)
            if (o.row[lane] >= 0) put(found, lane, get(some[o.island[lane]], lane));
        return found;
    }
    // Rows that take part from now on; whether there are more.
    bool join(int round) {
        const S zero(T(0));
        const auto near = [&](int body) { return round ? -missed(body) : S(T(kApproach)); };
        islands.fill(c.joined, constant_mask<S>(false));
        start_joining();
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& a = c.contact[k];
            const auto on = a.on & c.live[x.root[a.body]];
            take(k, a.body, on & ((zero < a.ln) | (dot(a.n, a.v) - a.bound < near(a.body))),
                 h.slot_of.data());
        }
        const bool more = open_contacts();
        start_joining();
        for (int k = 0; k < c.limits; ++k) {
            const LimitRow<S>& a = c.limit[k];
            const auto on = a.on & c.live[x.root[a.body]];
            take(k, a.body, on & ((zero < a.l) | (a.v < near(a.body))), h.limit_of.data());
        }
        return open_limits() || more;
    }
    // Those of the pseudo velocities; the islands with more rows in c.joined.
    void join_push(int round) {
        const S more{T(kPushTolerance)};
        islands.fill(c.joined, constant_mask<S>(false));
        start_joining();
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& a = c.contact[k];
            const auto asks = round ? a.push_v < -missed(a.body) : more < a.push_bound;
            take(k, a.body, a.on & c.live[x.root[a.body]] & asks, h.slot_of.data());
        }
        open_contacts();
        start_joining();
        for (int k = 0; k < c.limits; ++k) {
            const LimitRow<S>& a = c.limit[k];
            const auto asks = round ? a.push_v < -missed(a.body) : more < a.push_bound;
            take(k, a.body, a.on & c.live[x.root[a.body]] & asks, h.limit_of.data());
        }
        open_limits();
        islands.unite(c.joined);
    }

    // rows that have no slot yet, by copy: taken_[lane] of them
    void start_joining() {
        for (int lane = 0; lane < lanes; ++lane) taken_[lane] = 0;
        most_ = all_ = 0;
    }
    void take(int k, int body, const MaskOf<S>& wanted, const std::int32_t* slot_of) {
        each_lane(wanted, [&](int lane) {
            if (slot_of[k * lanes + lane] >= 0) return;
            h.taken.reserve(all_ + 1);
            h.taken[all_++] = {k, lane, taken_[lane]++, islands.island(x.root[body], lane)};
            put(c.joined[x.root[body]], lane, true);
            if (taken_[lane] > most_) most_ = taken_[lane];
        });
    }
    // Slots for the rows taken: each copy's in its own order.
    int open(std::int32_t* slot_of, int count, Buffer<Slot<S>>& slot) {
        if (!most_) return 0;
        slot.reserve(count + most_);
        for (int k = 0; k < most_; ++k) {
            Slot<S>& o = slot[count + k];
            o.on = constant_mask<S>(false);
            o.shared = false;
            for (int lane = 0; lane < lanes; ++lane) o.row[lane] = -1;
        }
        for (int k = 0; k < all_; ++k) {
            const Taken& a = h.taken[k];
            Slot<S>& o = slot[count + a.place];
            slot_of[a.row * lanes + a.lane] = count + a.place;
            o.row[a.lane] = a.row;
            o.island[a.lane] = a.island;
            put(o.on, a.lane, true);
        }
        for (int k = 0; k < most_; ++k) {
            Slot<S>& o = slot[count + k];
            o.shared = o.row[0] >= 0;
            for (int lane = 1; lane < lanes; ++lane) o.shared = o.shared && o.row[lane] == o.row[0];
        }
        return most_;
    }
    // Slots that are left when some copies have gone: those at the end that nobody needs are free.
    int leave(const MaskOf<S>& some, Buffer<Slot<S>>& slot, int count, std::int32_t* slot_of) {
        int left = 0;
        for (int k = 0; k < count; ++k) {
            Slot<S>& o = slot[k];
            for (int lane = 0; lane < lanes; ++lane) {
                if (o.row[lane] < 0) continue;
                if (get(some, lane)) {
                    slot_of[o.row[lane] * lanes + lane] = -1;
                    o.row[lane] = -1;
                    o.shared = false;
                    put(o.on, lane, false);
                } else {
                    left = k + 1;
                }
            }
        }
        return left;
    }
    void keep_up_to(const Slot<S>& last, int directions) {
        const std::int64_t used = last.y + directions * last.size;
        const int runs = last.run + last.runs;
        if (h.used < used) h.used = used;
        if (h.runs < runs) h.runs = runs;
    }
    bool open_contacts() {
        const int first = h.slots, more = open(h.slot_of.data(), first, h.slot);
        h.slots += more;
        for (int k = first; k < h.slots; ++k) fill_contact(h.slot[k]);
        return more > 0;
    }
    bool open_limits() {
        const int first = h.limits, more = open(h.limit_of.data(), first, h.limit);
        h.limits += more;
        for (int k = first; k < h.limits; ++k) fill_limit(h.limit[k]);
        return more > 0;
    }
    void forget_limits(int first) {
        h.limit_of.reserve(static_cast<std::size_t>(c.limits + 1) * lanes);
        for (int k = first * lanes; k < c.limits * lanes; ++k) h.limit_of[k] = -1;
    }

    // ---- half solves

    // The bodies that a slot reaches in any copy, from the leaves to the roots, and its runs of u.
    int reach(int count, int body) {
        for (; body >= 0 && !h.reached[body]; body = f.body[body].parent) {
            h.reached[body] = 1;
            // descending; a path is that already
            int k = count++;
            for (; k > 0 && h.body[k - 1] < body; --k) h.body[k] = h.body[k - 1];
            h.body[k] = body;
        }
        return count;
    }
    void lay_out(Slot<S>& o, int count) {
        o.run = h.runs;
        o.size = 0;
        h.run.reserve(h.runs + count);
        for (int k = 0; k < count; ++k) {
            const int i = h.body[k], chain = h.layout.chain(i);
            h.reached[i] = 0;
            if (!h.length[chain]) h.length[chain] = h.layout.length(i, f.body[i].kind);
            if (!h.rooted[i]) {
                h.rooted[i] = 1;
                h.root[i] = root_of(f.body[i].kind, c.give[i]);
            }
        }
        for (int k = count - 1; k >= 0; --k) {
            const int chain = h.layout.chain(h.body[k]), length = h.length[chain];
            if (length <= 0) continue;
            h.run[h.runs++] = {h.layout.chain_first(chain), length};
            h.length[chain] = -o.size - 1;  // where it begins
            o.size += length;
        }
        o.runs = h.runs - o.run;
        o.y = h.used;
    }
    // where a body's numbers begin among the slot's
    int place(int i) const {
        const int chain = h.layout.chain(i);
        return -h.length[chain] - 1 + h.layout.place(i) - h.layout.chain_first(chain);
    }
    void clear_lengths(int count) {
        for (int k = 0; k < count; ++k) h.length[h.layout.chain(h.body[k])] = 0;
    }

    // Numbers of the rows of a slot, each copy's from its own row; fields(row) lists them.
    template <class Row, class Fields, std::size_t N>
    static void gather(const Slot<S>& o, const Row* row, Fields fields, S (&out)[N]) {
        if constexpr (lanes == 1) {
            const std::array<const S*, N> from = fields(row[o.row[0]]);
            for (std::size_t k = 0; k < N; ++k) out[k] = *from[k];
        } else if (o.shared) {
            const std::array<const S*, N> from = fields(row[o.row[0]]);
            for (std::size_t k = 0; k < N; ++k) out[k] = *from[k];
        } else {
            alignas(64) T numbers[N][lanes] = {};
            each_lane(o.on, [&](int lane) {
                const std::array<const S*, N> from = fields(row[o.row[lane]]);
                for (std::size_t k = 0; k < N; ++k)
                    std::memcpy(&numbers[k][lane],
                                reinterpret_cast<const char*>(from[k]) + lane * sizeof(T),
                                sizeof(T));
            });
            for (std::size_t k = 0; k < N; ++k) std::memcpy(&out[k].x, numbers[k], sizeof out[k].x);
        }
    }
    static void put3(Vec3<S>& to, int lane, const Vec3<S>& from) {
        put(to.x, lane, get(from.x, lane));
        put(to.y, lane, get(from.y, lane));
        put(to.z, lane, get(from.z, lane));
    }

    void fill_contact(Slot<S>& o) {
        int count = 0;
        for (int lane = 0; lane < lanes; ++lane) {
            if (o.row[lane] < 0) continue;
            count = reach(count, c.contact[o.row[lane]].body);
            count = reach(count, c.contact[o.row[lane]].other);
        }
        lay_out(o, count);
        h.used += 3 * o.size;
        h.y.reserve(h.used);
        S* y = h.y.data() + o.y;
        clear_ends(o, y, 3);
        S x_[20];
        const auto fields = [](const Contact<S>& a) {
            return std::array<const S*, 20>{
                &a.r.x, &a.r.y, &a.r.z,  &a.r_other.x, &a.r_other.y, &a.r_other.z, &a.n.x,
                &a.n.y, &a.n.z, &a.t.x,  &a.t.y,       &a.t.z,       &a.u.x,       &a.u.y,
                &a.u.z, &a.mu,  &a.soft, &a.slick,     &a.lt,        &a.lu};
        };
        gather(o, c.contact.data(), fields, x_);
        const Vec3<S> r = vec_at(x_), r2 = vec_at(x_ + 3), n = vec_at(x_ + 6);
        o.t = vec_at(x_ + 9);
        o.u = vec_at(x_ + 12);
        o.mu = x_[15];
        o.soft = x_[16];
        o.slick = x_[17];
        o.l[1] = x_[18];
        o.l[2] = x_[19];
        Sym3<S> own;
        if constexpr (lanes == 1) own = climb_contact(o, count, r, r2, n, y);
        else own = climb_contact_lanes(o, count, r, r2, n, y);
        clear_lengths(count);
        condense(o, own, y);
        o.push = o.root = S(T(0));
        // the rows go on in the slot's tangents
        if (o.shared) {
            Contact<S>& a = c.contact[o.row[0]];
            a.t = o.t;
            a.u = o.u;
            a.lt = o.l[1];
            a.lu = o.l[2];
            return;
        }
        for (int lane = 0; lane < lanes; ++lane) {
            if (o.row[lane] < 0) continue;
            Contact<S>& a = c.contact[o.row[lane]];
            put3(a.t, lane, o.t);
            put3(a.u, lane, o.u);
            put(a.lt, lane, get(o.l[1], lane));
            put(a.lu, lane, get(o.l[2], lane));
        }
    }
    // What a run has beyond the slot's bodies, to be aligned: fewer than kAlign numbers.
    void clear_ends(const Slot<S>& o, S* y, int directions) const {
        const S zero(T(0));
        if constexpr (lanes == 1) {
            for (int k = 0; k < directions * o.size; ++k) y[k] = zero;
        } else {
            for (int i = 0; i < o.runs; ++i) {
                y += directions * h.run[o.run + i].count;
                for (int k = 1; k <= directions * (HalfSolve<S>::kAlign - 1); ++k) y[-k] = zero;
            }
        }
    }

    // Unit impulses of a contact along n, t, u go up the bodies of a slot; what the joints get goes
    // to y. Returns the response to each other. One copy: the three directions are lanes.
    Sym3<S> climb_contact(const Slot<S>& o, int count, const Vec3<S>& r, const Vec3<S>& r2,
                          const Vec3<S>& n, S* y) {
        using V = Pack<T, 4>;
        const S zero(T(0));
        Sym3<S> own = {zero, zero, zero, zero, zero, zero};
        if constexpr (lanes == 1) {
            V none(T(0));
            for (int k = 0; k < count; ++k)
                h.W4[h.body[k]] = {{none, none, none}, {none, none, none}};
            const auto three = [&](T a, T b, T d) {
                V v(T(0));
                v.x[0] = a, v.x[1] = b, v.x[2] = d;
                return v;
            };
            const Vec3<V> d = {three(n.x, o.t.x, o.u.x), three(n.y, o.t.y, o.u.y),
                               three(n.z, o.t.z, o.u.z)};
            const Contact<S>& a = c.contact[o.row[0]];
            h.W4[a.body] = {across(r, d), d};
            if (a.other >= 0) {
                const Vec3<V> back = {none - d.x, none - d.y, none - d.z};
                Wrench<V>& w = h.W4[a.other];
                w = w + Wrench<V>{across(r2, back), back};
            }
            const Vec3<V> still = {none, none, none};
            for (int k = 0; k < count; ++k) {
                const int i = h.body[k], p = f.body[i].parent, at = place(i);
                const int dofs = dof_count(f.body[i].kind);
                V part[6];
                const Wrench<V> above = half_step(f.body[i].kind, work[i].R, c.give[i], h.root[i],
                                                  h.W4[i], still, part);
                for (int e = 0; e < dofs; ++e)
                    for (int dir = 0; dir < 3; ++dir) y[dir * o.size + at + e] = part[e].x[dir];
                if (p < 0) continue;
                Wrench<V>& w = h.W4[p];
                w = w + Wrench<V>{above.n + across(work[i].r, above.f), above.f};
            }
            for (int k = 0; k < o.size; ++k) add_own(own, y[k], y[k + o.size], y[k + 2 * o.size]);
        }
        return own;
    }
    static POISE_INLINE void add_own(Sym3<S>& a, const S& n, const S& t, const S& u) {
        a.xx = a.xx + n * n;
        a.xy = a.xy + n * t;
        a.xz = a.xz + n * u;
        a.yy = a.yy + t * t;
        a.yz = a.yz + t * u;
        a.zz = a.zz + u * u;
    }
    Sym3<S> climb_contact_lanes(const Slot<S>& o, int count, const Vec3<S>& r, const Vec3<S>& r2,
                                const Vec3<S>& n, S* y) {
        const S zero(T(0));
        Sym3<S> own = {zero, zero, zero, zero, zero, zero};
        for (int k = 0; k < count; ++k)
            for (int dir = 0; dir < 3; ++dir) h.W[3 * h.body[k] + dir] = zero_wrench<S>();
        Wrench<S> mine[3], theirs[3];
        unit_impulses(o, r, r2, n, mine, theirs);
        for (int dir = 0; dir < 3; ++dir) {
            if (o.shared) {
                const Contact<S>& a = c.contact[o.row[0]];
                h.W[3 * a.body + dir] = mine[dir];
                if (a.other >= 0) h.W[3 * a.other + dir] = theirs[dir];
                continue;
            }
            for (int lane = 0; lane < lanes; ++lane) {
                if (o.row[lane] < 0) continue;
                const Contact<S>& a = c.contact[o.row[lane]];
                put_wrench(h.W[3 * a.body + dir], lane, mine[dir]);
                if (a.other >= 0) put_wrench(h.W[3 * a.other + dir], lane, theirs[dir]);
            }
        }
        for (int k = 0; k < count; ++k) {
            const int i = h.body[k];
            S* to = y + 3 * place(i);
            switch (f.body[i].kind) {
                case Kind::free: climb_joint<Kind::free>(i, to, own); break;
                case Kind::ball: climb_joint<Kind::ball>(i, to, own); break;
                case Kind::hinge: climb_joint<Kind::hinge>(i, to, own); break;
                default: climb_joint<Kind::slide>(i, to, own);
            }
        }
        return own;
    }
    // Of a contact along n, t, u, on either body. Not inlined: the same for rows that copies share.
    POISE_NOINLINE static void unit_impulses(const Slot<S>& o, const Vec3<S>& r, const Vec3<S>& r2,
                                             const Vec3<S>& n, Wrench<S>* mine, Wrench<S>* theirs) {
        const Vec3<S>* const direction[3] = {&n, &o.t, &o.u};
        for (int dir = 0; dir < 3; ++dir) {
            mine[dir] = impulse_at(r, *direction[dir]);
            theirs[dir] = impulse_at(r2, zero3<S>() - *direction[dir]);
        }
    }
    template <Kind kind>
    POISE_INLINE void climb_joint(int i, S* y, Sym3<S>& own) {
        constexpr int dofs = dof_count(kind);
        const int p = f.body[i].parent;
        S part[3][6];
        for (int dir = 0; dir < 3; ++dir) {
            const Wrench<S> above = half_step(kind, work[i].R, c.give[i], h.root[i],
                                              h.W[3 * i + dir], zero3<S>(), part[dir]);
            if (p >= 0) add(h.W[3 * p + dir], shift(above, work[i].r));
        }
        for (int e = 0; e < dofs; ++e) {
            add_own(own, part[0][e], part[1][e], part[2][e]);
            for (int dir = 0; dir < 3; ++dir) y[3 * e + dir] = part[dir][e];
        }
    }
    static void put_wrench(Wrench<S>& to, int lane, const Wrench<S>& from) {
        put3(to.n, lane, from.n);
        put3(to.f, lane, from.f);
    }
    // The same for an impulse in the joint that each copy's row is of.
    void climb_limit(const Slot<S>& o, int count, const Vec3<S>& impulse, S* y) {
        for (int k = 0; k < count; ++k) {
            h.W[3 * h.body[k]] = zero_wrench<S>();
            h.j[h.body[k]] = zero3<S>();
        }
        for (int lane = 0; lane < lanes; ++lane)
            if (o.row[lane] >= 0) put3(h.j[c.limit[o.row[lane]].body], lane, impulse);
        for (int k = 0; k < count; ++k) {
            const int i = h.body[k], p = f.body[i].parent, at = place(i);
            S part[6];
            const Wrench<S> above = half_step(f.body[i].kind, work[i].R, c.give[i], h.root[i],
                                              h.W[3 * i], h.j[i], part);
            for (int e = 0; e < dof_count(f.body[i].kind); ++e) y[at + e] = part[e];
            if (p >= 0) add(h.W[3 * p], shift(above, work[i].r));
        }
    }
    void fill_limit(Slot<S>& o) {
        int count = 0;
        for (int lane = 0; lane < lanes; ++lane)
            if (o.row[lane] >= 0) count = reach(count, c.limit[o.row[lane]].body);
        lay_out(o, count);
        h.used += o.size;
        h.y.reserve(h.used);
        S* y = h.y.data() + o.y;
        const S zero(T(0));
        clear_ends(o, y, 1);
        S g_[3];
        const auto fields = [](const LimitRow<S>& a) {
            return std::array<const S*, 3>{&a.g.x, &a.g.y, &a.g.z};
        };
        gather(o, c.limit.data(), fields, g_);
        const Vec3<S> g = vec_at(g_);
        climb_limit(o, count, g, y);
        clear_lengths(count);
        S own = zero;
        for (int k = 0; k < o.size; ++k) own = own + y[k] * y[k];
        o.inv_n = S(T(1)) / larger(own, S(T(1e-30)));
        leave_out(o, own, y, 1);
        o.push = zero;
    }
    // What has almost no inertia answers beyond all numbers: it takes no part.
    void leave_out(Slot<S>& o, const S& response, S* y, int directions) {
        const auto out = o.on & negate(response < S(T(kMostResponse)));
        if (!any(out)) return;
        const S zero(T(0));
        o.on = o.on & negate(out);
        for (int k = 0; k < directions * o.size; ++k) y[k] = select(out, zero, y[k]);
        for (S* number : {&o.inv_n, &o.inv_t, &o.inv_u, &o.at, &o.au, &o.weight})
            *number = select(out, zero, *number);
        for (int d = 0; d < 3; ++d) o.l[d] = select(out, zero, o.l[d]);
    }

    // The own response of a contact, and the tangents that make it diagonal.
    void condense(Slot<S>& o, const Sym3<S>& own, S* y) {
        const S zero(T(0)), one(T(1)), half(T(0.5)), tiny(T(1e-30));
        const int next = lanes == 1 ? o.size : 1, step = lanes == 1 ? 1 : 3;
        const S nt = own.xy, nu = own.xz, tu = own.yz;
        const S nn = larger(own.xx + o.soft, tiny), tt = own.yy + o.slick, uu = own.zz + o.slick;
        o.inv_n = one / nn;
        const S at = nt * o.inv_n, au = nu * o.inv_n;
        const S a = tt - at * nt, b = tu - at * nu, d = uu - au * nu;
        const S off = half * (a - d), mean = half * (a + d);
        const S r = square_root(off * off + b * b);
        const auto turned = S(T(1e-6)) * mean < r;
        const S c2 = off / larger(r, tiny);
        const S cosine = select(turned, square_root(larger(half + half * c2, zero)), one);
        const S s = square_root(larger(half - half * c2, zero));
        const S sine = select(turned, select(b < zero, -s, s), zero);
        o.weight = (nn + tt + uu) * S(T(1.0 / 3));
        // what is left of a point that moves along its normal alone is rounding, of either sign
        const S some = S(sizeof(T) == 8 ? T(1e-12) : T(1e-5)) * mean;
        const S least = larger(some, S(sizeof(T) == 8 ? T(1e-14) : T(1e-6)) * o.weight) + tiny;
        o.st = larger(select(turned, mean + r, a), least);
        o.su = larger(select(turned, mean - r, d), least);
        o.inv_t = one / o.st;
        o.inv_u = one / o.su;
        o.at = cosine * at + sine * au;
        o.au = cosine * au - sine * at;
        const Vec3<S> t = o.t;
        o.t = cosine * t + sine * o.u;
        o.u = cosine * o.u - sine * t;
        const S lt = o.l[1];
        o.l[1] = cosine * lt + sine * o.l[2];
        o.l[2] = cosine * o.l[2] - sine * lt;
        for (int k = 0; k < o.size; ++k) {
            S &p = y[k * step + next], &q = y[k * step + 2 * next];
            const S v = p;
            p = cosine * v + sine * q;
            q = cosine * q - sine * v;
        }
    }

    // ---- sweeps

    void clear(S* u) {
        const S zero(T(0));
        for (int k = 0; k < h.layout.size(); ++k) u[k] = zero;
    }
    // velocities that are missing, and impulses, from the rows
    void load() {
        clear(h.u.data());
        for (int k = 0; k < h.slots; ++k) {
            Slot<S>& o = h.slot[k];
            if (!any(o.live)) continue;
            S x_[10];
            const auto fields = [](const Contact<S>& a) {
                return std::array<const S*, 10>{&a.v.x, &a.v.y,   &a.v.z, &a.n.x, &a.n.y,
                                                &a.n.z, &a.bound, &a.ln,  &a.lt,  &a.lu};
            };
            gather(o, c.contact.data(), fields, x_);
            const Vec3<S> v = vec_at(x_), n = vec_at(x_ + 3);
            o.v[0] = dot(n, v) - x_[6];
            o.v[1] = dot(o.t, v);
            o.v[2] = dot(o.u, v);
            for (int d = 0; d < 3; ++d) o.l[d] = x_[7 + d];
        }
        for (int k = 0; k < h.limits; ++k) {
            Slot<S>& o = h.limit[k];
            if (!any(o.live)) continue;
            S x_[2];
            const auto fields = [](const LimitRow<S>& a) {
                return std::array<const S*, 2>{&a.v, &a.l};
            };
            gather(o, c.limit.data(), fields, x_);
            o.v[0] = x_[0];
            o.l[0] = x_[1];
        }
    }
    void store() {
        for (int k = 0; k < h.slots; ++k) {
            const Slot<S>& o = h.slot[k];
            for (int lane = 0; lane < lanes; ++lane) {
                if (!get(o.live, lane)) continue;
                Contact<S>& a = c.contact[o.row[lane]];
                // what overflows is no impulse
                const T l[3] = {get(o.l[0], lane), get(o.l[1], lane), get(o.l[2], lane)};
                const T sum = l[0] + l[1] + l[2];
                const bool good = sum - sum == T(0);
                put(a.ln, lane, good ? l[0] : T(0));
                put(a.lt, lane, good ? l[1] : T(0));
                put(a.lu, lane, good ? l[2] : T(0));
            }
        }
        for (int k = 0; k < h.limits; ++k) {
            const Slot<S>& o = h.limit[k];
            for (int lane = 0; lane < lanes; ++lane)
                if (get(o.live, lane)) put(c.limit[o.row[lane]].l, lane, get(o.l[0], lane));
        }
    }

    void sweep(int most) {
        if (islands.single()) sweep_of<true>(most);
        else sweep_of<false>(most);
    }
    // alone: an island is a copy
    template <bool alone>
    POISE_NOINLINE void sweep_of(int most) {
        auto going = start_sweeps();
        const int share = static_cast<int>(kFastShare * most);
        const int quick = share < kLeastSweeps ? kLeastSweeps : share;
        int since = 0;  // sweeps since an extrapolation
        S exit = c.exit[islands.tree(0)];
        for (int k = 0; k < most && any(going); ++k) {
            if (c.timer.profile) ++c.timer.profile->iterations;
            S change(T(0));
            if (k + 1 == quick) {
                exit = widened(islands.tree(0));
                for (int i = 0; i < h.slots && !alone; ++i) widen_exit(h.slot[i]);
                for (int i = 0; i < h.limits && !alone; ++i) widen_exit(h.limit[i]);
            }
            if (since) keep_sweep(since + 1 == kExtrapolate);
            for (int i = 0; i < h.slots; ++i) {
                Slot<S>& o = h.slot[i];
                const auto on = alone ? o.on & going : o.going;
                if (!any(on)) continue;
                S v[3], dl[3];
                read(o, h.u.data(), v);
                for (int d = 0; d < 3; ++d) v[d] = v[d] + o.v[d];
                solve_cone(o, v, on, dl);
                write(o, dl, h.u.data());
                const S far = larger(larger(absolute(dl[0]), absolute(dl[1])), absolute(dl[2]));
                note_change<alone>(o, o.weight * far, change);
            }
            for (int i = 0; i < h.limits; ++i) {
                Slot<S>& o = h.limit[i];
                const auto on = alone ? o.on & going : o.going;
                if (!any(on)) continue;
                note_change<alone>(o, visit_limit(o, on, h.u.data(), o.v[0], o.l[0]), change);
            }
            going = end_sweep<alone>(going, change, exit);
            if (k + 2 >= most || !any(going)) continue;
            since = since + 1 < kExtrapolate ? since + 1 : 0;
            if (!since) extrapolate<alone>(going);
            else if (since + 1 == kExtrapolate) keep_change();
        }
    }
    // Of a sweep: u before it, and the impulses if they will be extrapolated; the change of u.
    void keep_sweep(bool impulses) {
        for (int i = 0; i < h.layout.size(); ++i) h.u_before[i] = h.u[i];
        if (!impulses) return;
        for (int i = 0; i < h.slots; ++i)
            for (int d = 0; d < 3; ++d) h.slot[i].l_before[d] = h.slot[i].l[d];
        for (int i = 0; i < h.limits; ++i) h.limit[i].l_before[0] = h.limit[i].l[0];
    }
    void keep_change() {
        for (int i = 0; i < h.layout.size(); ++i) h.u_change[i] = h.u[i] - h.u_before[i];
    }
    // Aitken's extrapolation, island by island: where the changes of two sweeps shrink by the
    // factor r along one direction, the rest of the way is r / (1 - r) of the last one. The next
    // sweep brings the impulses back into their cones.
    template <bool alone>
    void extrapolate(const MaskOf<S>& going) {
        const S zero(T(0)), one(T(1)), most{T(kLargestContraction)};
        // visit(tree, number of u)
        const auto each_number = [&](auto visit) {
            for (int i = 0; i < f.nb; ++i)
                for (int e = 0; e < dof_count(f.body[i].kind); ++e)
                    visit(alone ? islands.tree(0) : x.root[i], h.layout.place(i) + e);
        };
        islands.fill(c.free_work, zero);
        islands.fill(c.own_work, zero);
        each_number([&](int tree, int k) {
            c.free_work[tree] = c.free_work[tree] + (h.u[k] - h.u_before[k]) * h.u_change[k];
            c.own_work[tree] = c.own_work[tree] + h.u_change[k] * h.u_change[k];
        });
        islands.unite_sums(c.free_work);
        islands.unite_sums(c.own_work);
        for (int t = 0; t < islands.trees(); ++t) {
            const int tree = islands.tree(t);
            const S ratio = c.free_work[tree] / larger(c.own_work[tree], S(T(1e-30)));
            const S r = select(ratio < most, larger(ratio, zero), most);
            const auto on = (alone ? going : going_island(tree)) & (ratio < S(T(1.1)));
            c.share[tree] = select(on, r / (one - r), zero);
        }
        each_number(
            [&](int tree, int k) { h.u[k] = h.u[k] + c.share[tree] * (h.u[k] - h.u_before[k]); });
        const auto go_on = [&](Slot<S>& o, int directions) {
            S more = c.share[islands.tree(0)];
            for (int lane = 0; lane < lanes && !alone; ++lane)
                if (o.row[lane] >= 0) put(more, lane, get(c.share[o.island[lane]], lane));
            for (int d = 0; d < directions; ++d) o.l[d] = o.l[d] + more * (o.l[d] - o.l_before[d]);
        };
        for (int i = 0; i < h.slots; ++i) go_on(h.slot[i], 3);
        for (int i = 0; i < h.limits; ++i) go_on(h.limit[i], 1);
    }
    // c.going of the first root of each copy's island
    MaskOf<S> going_island(int tree) const {
        auto on = constant_mask<S>(false);
        for (int lane = 0; lane < lanes; ++lane)
            put(on, lane, get(c.going[islands.island(tree, lane)], lane));
        return on;
    }
    // the copies with islands to sweep
    MaskOf<S> start_sweeps() {
        if (islands.single()) return c.live[islands.tree(0)];
        for (int i = 0; i < islands.count(); ++i) {
            c.going[islands.first(i)] = c.live[islands.first(i)];
            c.changed[islands.first(i)] = constant_mask<S>(false);
        }
        for (int k = 0; k < h.slots; ++k) start_sweeps(h.slot[k]);
        for (int k = 0; k < h.limits; ++k) start_sweeps(h.limit[k]);
        return islands.copies(c.live);
    }
    void start_sweeps(Slot<S>& o) {
        o.going = o.live;
        for (int lane = 0; lane < lanes; ++lane)
            if (o.row[lane] >= 0) put(o.exit, lane, get(c.exit[o.island[lane]], lane));
    }
    // how far a visit has changed a velocity
    template <bool alone>
    POISE_INLINE void note_change(const Slot<S>& o, const S& change, S& most) {
        if constexpr (alone) {
            most = larger(most, change);
        } else {
            const auto far = o.going & (o.exit < change);
            if (!any(far)) return;
            for (int lane = 0; lane < lanes; ++lane)
                if (get(far, lane)) put(c.changed[o.island[lane]], lane, true);
        }
    }
    // Fast islands have had their sweeps, unless those still change much. For this round of sweeps:
    // how far it comes depends on the other copies.
    S widened(int tree) const {
        const S much = S(T(kMuch)) * c.fastest[tree];
        return select(c.swift[tree], larger(c.exit[tree], much), c.exit[tree]);
    }
    void widen_exit(Slot<S>& o) {
        for (int lane = 0; lane < lanes; ++lane)
            if (o.row[lane] >= 0) put(o.exit, lane, get(widened(o.island[lane]), lane));
    }
    // Islands that have changed by more than their exit go on; the copies with any. alone: by more
    // than exit.
    template <bool alone>
    MaskOf<S> end_sweep(const MaskOf<S>& going, const S& change, const S& exit) {
        if constexpr (alone) return going & (exit < change);
        auto left = constant_mask<S>(false), ended = left;
        for (int i = 0; i < islands.count(); ++i) {
            auto &go = c.going[islands.first(i)], &changed = c.changed[islands.first(i)];
            ended = ended | (go & negate(changed));
            go = go & changed;
            left = left | go;
            changed = constant_mask<S>(false);
        }
        if (!any(ended)) return left;
        for (int k = 0; k < h.slots; ++k) h.slot[k].going = in(h.slot[k], c.going);
        for (int k = 0; k < h.limits; ++k) h.limit[k].going = in(h.limit[k], c.going);
        return left;
    }
    S visit_limit(Slot<S>& o, const MaskOf<S>& on, S* u, S missing, S& l) {
        const S zero(T(0));
        const S* y = h.y.data() + o.y;
        const S v = missing + read_one(o, y, u);
        const S dl = select(on, larger(l - v * o.inv_n, zero) - l, zero);
        l = l + dl;
        write_one(o, y, dl, u);
        return absolute(dl) / o.inv_n;
    }
    static S absolute(S a) { return larger(a, -a); }

    // ---- islands at rest that sweeps do not settle

    int island_of(int body) {
        auto& up = c.newton.island;
        int i = x.root[body];
        while (up[i] != i) i = up[i] = up[up[i]];
        return i;
    }
    void settle() {
        const auto copies = islands.copies(c.live);
        for (int lane = 0; lane < lanes; ++lane)
            if (get(copies, lane) && (thorough_ || has_joined_trees(lane))) settle_copy(lane);
    }
    bool joins_trees(const Contact<S>& a) const {
        return a.other >= 0 && x.root[a.other] != x.root[a.body];
    }
    bool has_joined_trees(int lane) const {
        for (int k = 0; k < h.slots; ++k)
            if (get(h.slot[k].live, lane) && joins_trees(c.contact[h.slot[k].row[lane]]))
                return true;
        return false;
    }
    // Islands are trees joined by contacts.
    void settle_copy(int lane) {
        NewtonScratch& n = c.newton;
        for (int i = 0; i < f.nb; ++i) n.island[i] = i;
        for (int k = 0; k < h.slots; ++k) {
            if (!get(h.slot[k].live, lane)) continue;
            const Contact<S>& a = c.contact[h.slot[k].row[lane]];
            if (!joins_trees(a)) continue;
            const int one = island_of(a.body), two = island_of(a.other);
            n.island[one > two ? one : two] = one > two ? two : one;
        }
        // those that are in motion, or that sweeps have settled, stay as they are
        n.state.reserve(f.nb);
        for (int i = 0; i < f.nb; ++i) n.state[i] = 0;
        for (int k = 0; k < h.slots; ++k) {
            const Slot<S>& o = h.slot[k];
            if (!get(o.live, lane)) continue;
            const Contact<S>& a = c.contact[o.row[lane]];
            auto& state = n.state[island_of(a.body)];
            if (joins_trees(a)) state |= NewtonScratch::joined;
            if (!thorough_ && (state & NewtonScratch::moving)) continue;
            if (get(zero_ < o.l[0], lane) && moves(a, lane)) state |= NewtonScratch::moving;
            read_row(o, lane, n.probe);
            if (Newton::natural_residual(n.probe) > rest_tolerance()) state |= NewtonScratch::open;
        }
        for (int i = 0; i < f.nb; ++i) {
            const bool rests = n.state[i] == (NewtonScratch::joined | NewtonScratch::open);
            if (rests || (thorough_ && (n.state[i] & NewtonScratch::open))) settle_island(i, lane);
        }
    }
    bool moves(const Contact<S>& a, int lane) const {
        Vec3<S> v = point_velocity(c.before[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(c.before[a.other], a.r_other);
        return get(dot(v, v), lane) > T(kResting * kResting);
    }
    void settle_island(int island, int lane) {
        NewtonScratch& n = c.newton;
        n.rows = n.unknowns = n.numbers = 0;
        for (int i = 0; i < h.layout.size(); ++i) n.unknown[i] = -1;
        for (int k = 0; k < h.slots; ++k) {
            const Slot<S>& o = h.slot[k];
            if (get(o.live, lane) && island_of(c.contact[o.row[lane]].body) == island)
                add_row(o, k, lane, false);
        }
        for (int k = 0; k < h.limits; ++k) {
            const Slot<S>& o = h.limit[k];
            if (get(o.live, lane) && island_of(c.limit[o.row[lane]].body) == island)
                add_row(o, k, lane, true);
        }
        number_unknowns();
        if (c.timer.profile) ++c.timer.profile->islands;
        if (!Newton(n).solve(kTight * rest_tolerance())) return;
        for (int k = 0; k < n.rows; ++k) {
            const NewtonRow& a = n.row[k];
            Slot<S>& o = a.joint ? h.limit[a.slot] : h.slot[a.slot];
            for (int d = 0; d < (a.joint ? 1 : 3); ++d) put(o.l[d], lane, T(a.l[d]));
        }
    }
    // velocity and impulses of a contact with the sweeps' result
    void read_row(const Slot<S>& o, int lane, NewtonRow& a) const {
        S v[3];
        read(o, h.u.data(), v);
        for (int d = 0; d < 3; ++d) {
            a.v[d] = a.now[d] = double(get(v[d] + o.v[d], lane));
            a.l[d] = double(get(o.l[d], lane));
        }
        a.R = kSoft * double(get(o.weight, lane));
        a.mu = double(get(o.mu, lane));
        a.joint = false;
    }
    void add_row(const Slot<S>& o, int slot, int lane, bool joint) {
        NewtonScratch& n = c.newton;
        n.row.reserve(n.rows + 1);
        NewtonRow& a = n.row[n.rows++];
        if (joint) {
            for (int d = 0; d < 3; ++d) a.v[d] = a.now[d] = a.l[d] = 0;
            a.v[0] = a.now[0] =
                double(get(o.v[0] + read_one(o, h.y.data() + o.y, h.u.data()), lane));
            a.l[0] = double(get(o.l[0], lane));
            a.R = kSoft / double(get(o.inv_n, lane));
            a.mu = 0;
        } else {
            read_row(o, lane, a);
        }
        a.joint = joint;
        a.slot = slot;
        a.first = n.numbers;
        n.index.reserve(n.numbers + o.size);
        n.y.reserve(3 * (n.numbers + o.size));
        const S* y = h.y.data() + o.y;
        const int next = lanes == 1 ? o.size : 1, step = lanes == 1 || joint ? 1 : 3;
        int at = 0;
        for (int i = 0; i < o.runs; ++i) {
            const Run& run = h.run[o.run + i];
            for (int k = 0; k < run.count; ++k, ++at) {
                double e[3] = {double(get(y[at * step], lane)), 0, 0};
                for (int d = 1; d < 3 && !joint; ++d)
                    e[d] = double(get(y[at * step + d * next], lane));
                if (e[0] == 0 && e[1] == 0 && e[2] == 0) continue;
                n.index[n.numbers] = run.first + k;
                n.unknown[run.first + k] = 0;
                for (int d = 0; d < 3; ++d) n.y[3 * n.numbers + d] = e[d];
                ++n.numbers;
            }
        }
        a.size = n.numbers - a.first;
    }
    void number_unknowns() {
        NewtonScratch& n = c.newton;
        for (int i = 0; i < h.layout.size(); ++i)
            if (n.unknown[i] >= 0) n.unknown[i] = n.unknowns++;
        for (int k = 0; k < n.numbers; ++k) n.index[k] = n.unknown[n.index[k]];
    }

    // ---- pseudo velocities: normals and bounds alone

    void load_push() {
        clear(h.u_push.data());
        for (int k = 0; k < h.slots; ++k) load_push(h.slot[k], c.contact.data());
        for (int k = 0; k < h.limits; ++k) load_push(h.limit[k], c.limit.data());
    }
    template <class Row>
    void load_push(Slot<S>& o, const Row* row) {
        S x_[2];
        const auto fields = [](const Row& a) {
            return std::array<const S*, 2>{&a.push_v, &a.push};
        };
        gather(o, row, fields, x_);
        o.v[0] = x_[0];
        o.push = x_[1];
    }
    void store_push() {
        for (int k = 0; k < h.slots; ++k)
            for (int lane = 0; lane < lanes; ++lane)
                if (get(h.slot[k].live, lane))
                    put(c.contact[h.slot[k].row[lane]].push, lane, get(h.slot[k].push, lane));
        for (int k = 0; k < h.limits; ++k)
            for (int lane = 0; lane < lanes; ++lane)
                if (get(h.limit[k].live, lane))
                    put(c.limit[h.limit[k].row[lane]].push, lane, get(h.limit[k].push, lane));
    }
    void sweep_push() {
        islands.fill(c.exit, S(T((thorough_ ? kThorough : 1.0) * kPushTolerance)));
        if (islands.single()) sweep_push_of<true>();
        else sweep_push_of<false>();
    }
    template <bool alone>
    POISE_NOINLINE void sweep_push_of() {
        const S zero(T(0));
        S* u = h.u_push.data();
        auto going = start_sweeps();
        for (int k = 0; k < push_sweeps() && any(going); ++k) {
            S change = zero;
            for (int i = 0; i < h.slots; ++i) {
                Slot<S>& o = h.slot[i];
                const auto on = alone ? o.on & going : o.going;
                if (!any(on)) continue;
                const S v = o.v[0] + read_normal(o, u);
                const S dl = select(on, larger(o.push - v * o.inv_n, zero) - o.push, zero);
                o.push = o.push + dl;
                write_normal(o, dl, u);
                note_change<alone>(o, absolute(dl) / o.inv_n, change);
            }
            for (int i = 0; i < h.limits; ++i) {
                Slot<S>& o = h.limit[i];
                const auto on = alone ? o.on & going : o.going;
                if (!any(on)) continue;
                note_change<alone>(o, visit_limit(o, on, u, o.v[0], o.push), change);
            }
            going = end_sweep<alone>(going, change, c.exit[islands.tree(0)]);
        }
    }

    // ---- y.u and u += y dl

    POISE_INLINE void read(const Slot<S>& o, const S* u, S* v) const {
        const S* y = h.y.data() + o.y;
        const Run* run = h.run.data() + o.run;
        if constexpr (lanes == 1) {
            using V = Pack<T, 4>;
            V a(T(0)), b(T(0)), d(T(0));
            for (int i = 0; i < o.runs; ++i) {
                const S* from = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 4, y += 4) {
                    const V x4 = quad(from + k);
                    a = a + quad(y) * x4;
                    b = b + quad(y + o.size) * x4;
                    d = d + quad(y + 2 * o.size) * x4;
                }
            }
            v[0] = sum(a), v[1] = sum(b), v[2] = sum(d);
        } else {
            // numbers at even and odd places apart: their sums do not wait for each other
            S a[3] = {S(T(0)), S(T(0)), S(T(0))}, b[3] = {S(T(0)), S(T(0)), S(T(0))};
            for (int i = 0; i < o.runs; ++i) {
                const S* from = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 2, y += 6) {
                    for (int d = 0; d < 3; ++d) a[d] = a[d] + y[d] * from[k];
                    for (int d = 0; d < 3; ++d) b[d] = b[d] + y[3 + d] * from[k + 1];
                }
            }
            for (int d = 0; d < 3; ++d) v[d] = a[d] + b[d];
        }
    }
    POISE_INLINE void write(const Slot<S>& o, const S* dl, S* u) const {
        const S* y = h.y.data() + o.y;
        const Run* run = h.run.data() + o.run;
        if constexpr (lanes == 1) {
            using V = Pack<T, 4>;
            const V a(dl[0]), b(dl[1]), d(dl[2]);
            for (int i = 0; i < o.runs; ++i) {
                S* to = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 4, y += 4)
                    set_quad(to + k, quad(to + k) + quad(y) * a + quad(y + o.size) * b +
                                         quad(y + 2 * o.size) * d);
            }
        } else {
            for (int i = 0; i < o.runs; ++i) {
                S* to = u + run[i].first;
                for (int k = 0; k < run[i].count; ++k, y += 3)
                    to[k] = to[k] + y[0] * dl[0] + y[1] * dl[1] + y[2] * dl[2];
            }
        }
    }
    POISE_INLINE S read_normal(const Slot<S>& o, const S* u) const {
        const S* y = h.y.data() + o.y;
        if constexpr (lanes == 1) {
            return read_one(o, y, u);
        } else {
            S a(T(0)), b(T(0));
            const Run* run = h.run.data() + o.run;
            for (int i = 0; i < o.runs; ++i) {
                const S* from = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 2, y += 6) {
                    a = a + y[0] * from[k];
                    b = b + y[3] * from[k + 1];
                }
            }
            return a + b;
        }
    }
    POISE_INLINE void write_normal(const Slot<S>& o, S dl, S* u) const {
        const S* y = h.y.data() + o.y;
        if constexpr (lanes == 1) {
            write_one(o, y, dl, u);
        } else {
            const Run* run = h.run.data() + o.run;
            for (int i = 0; i < o.runs; ++i) {
                S* to = u + run[i].first;
                for (int k = 0; k < run[i].count; ++k, y += 3) to[k] = to[k] + y[0] * dl;
            }
        }
    }
    // one direction, its numbers side by side
    POISE_INLINE S read_one(const Slot<S>& o, const S* y, const S* u) const {
        const Run* run = h.run.data() + o.run;
        if constexpr (lanes == 1) {
            using V = Pack<T, 4>;
            V a(T(0));
            for (int i = 0; i < o.runs; ++i)
                for (int k = 0; k < run[i].count; k += 4, y += 4)
                    a = a + quad(y) * quad(u + run[i].first + k);
            return sum(a);
        } else {
            S a(T(0)), b(T(0));
            for (int i = 0; i < o.runs; ++i) {
                const S* from = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 2, y += 2) {
                    a = a + y[0] * from[k];
                    b = b + y[1] * from[k + 1];
                }
            }
            return a + b;
        }
    }
    POISE_INLINE void write_one(const Slot<S>& o, const S* y, S dl, S* u) const {
        const Run* run = h.run.data() + o.run;
        if constexpr (lanes == 1) {
            using V = Pack<T, 4>;
            const V a(dl);
            for (int i = 0; i < o.runs; ++i) {
                S* to = u + run[i].first;
                for (int k = 0; k < run[i].count; k += 4, y += 4)
                    set_quad(to + k, quad(to + k) + quad(y) * a);
            }
        } else {
            for (int i = 0; i < o.runs; ++i) {
                S* to = u + run[i].first;
                for (int k = 0; k < run[i].count; ++k, ++y) to[k] = to[k] + *y * dl;
            }
        }
    }
    static POISE_INLINE Pack<T, 4> quad(const T* p) {
        Pack<T, 4> v;
        std::memcpy(&v.x, p, sizeof v.x);
        return v;
    }
    static POISE_INLINE void set_quad(T* p, const Pack<T, 4>& v) {
        std::memcpy(p, &v.x, sizeof v.x);
    }
    static POISE_INLINE T sum(const Pack<T, 4>& v) { return (v.x[0] + v.x[2]) + (v.x[1] + v.x[3]); }

    const Forest& f;
    const CollisionModel& x;
    const Work<S>* work;
    ContactScratch<S>& c;
    HalfSolve<S>& h;
    Islands<S>& islands;
    const bool thorough_;
    const double tolerance_;
    const int sweeps_;
    int taken_[lanes], most_ = 0, all_ = 0;  // rows taken: of each copy, the most, all
    const S zero_{T(0)};
};

}  // namespace poise::inline POISE_ISA
