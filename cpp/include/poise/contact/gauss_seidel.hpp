// Projected Gauss-Seidel on the implicit inertia, in linear time.
//
// A sweep walks over the tree, depth first. Going down an edge a body's motion follows from its
// parent's and from all impulses so far; at a body its rows are solved one after the other; going
// up the edge the parent learns what it received. So every row sees every impulse before it, a
// sweep costs a few products per body and row, and no matrix is built. Rows between two bodies are
// solved after the walk, each with a walk along the paths of the two.
//
// Copies that have settled no longer change, so that a copy's result does not depend on how long
// its neighbours take.
#pragma once

#include "poise/contact/constraints.hpp"
#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

// How often joints that turn too fast are looked for.
constexpr int kBrakeRounds = 2;

// Impulses on their way: of the velocities that stay, or of those that only move bodies apart.
template <class S>
struct Flow {
    Buffer<Wrench<S>> W, fresh;  // (nb) received with all that hangs on it; since the body was met
    Buffer<Vec3<S>> j;           // (nb) in the joint
    Buffer<Motion<S>> m;         // (nb) motion caused
    explicit Flow(int nb) : W(nb), fresh(nb), j(nb), m(nb) {}
};

template <class S>
struct ContactScratch {
    Buffer<JointResponse<S>> give;
    Buffer<Mobility<S>> T;
    Buffer<Motion<S>> before, base;    // (nb) motion before the step, and after it without contact
    Buffer<std::uint8_t> marked;       // (nb) on the way from a root to a row
    Buffer<std::int32_t> path;         // marked bodies in their order
    Buffer<std::int32_t> head, bound;  // (nb) first contact, first limit of a body; -1 is none
    Buffer<std::int32_t> group;        // first contact of each pair of bodies
    Buffer<std::int32_t> way;          // (2 nb) two paths
    Buffer<Contact<S>> contact;
    Buffer<LimitRow<S>> limit;
    Buffer<Vec3<S>> center, axis;  // (colliders)
    Buffer<S> speed;               // (colliders) of their fastest point, without contact [m/s]
    Buffer<Vec3<S>> middle;        // (nb) of the ball that holds a body's colliders
    Buffer<S> quickness;           // (nb) of the fastest point in that ball [m/s]
    Buffer<S> tree_reach;          // (nb) of the ball about a root's middle that holds its tree [m]
    Buffer<S> tree_quickness;      // (nb) of the fastest point in that ball [m/s]
    Buffer<Quat<S>> turn;          // (nb) of a body in this step
    Buffer<Vec3<S>> went;          // (nb) way of its joint [m]
    Buffer<S> dv, dv_first, push;  // (nv)
    Flow<S> real, apart;
    MaskOf<S> moved;  // copies in which bodies move by more than their velocities
    MaskOf<S> stuck;  // copies in which that did not take them out
    MaskOf<S> fast;   // copies in which something may pass a ridge unseen
    int contacts = 0, limits = 0, groups = 0, marks = 0;

    ContactScratch(const Forest& f, const CollisionModel& x)
        : give(f.nb), T(f.nb), before(f.nb), base(f.nb), marked(f.nb), path(f.nb), head(f.nb),
          bound(f.nb), group(x.pairs + 1), way(2 * f.nb), contact(x.pair_slots + x.probes + 1),
          limit(3 * x.bounds + kBrakeRounds * f.nb + 1), center(x.colliders + 1),
          axis(x.colliders + 1), speed(x.colliders + 1), middle(f.nb), quickness(f.nb),
          tree_reach(f.nb), tree_quickness(f.nb), turn(f.nb), went(f.nb), dv(f.nv), dv_first(f.nv),
          push(f.nv), real(f.nb), apart(f.nb) {}
};

// Which slots of a tile hold impulses.
class Kept {
  public:
    void clear() { count_ = 0; }
    void add(std::int32_t slot) {
        if (count_ == static_cast<int>(slots_.size())) {
            Buffer<std::int32_t> old;
            old.swap(slots_);
            slots_.resize(2 * old.size());
            for (int k = 0; k < count_; ++k) slots_[k] = old[k];
        }
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
        if (count_ == static_cast<int>(rows_.size())) grow();
        rows_[count_++] = {a.collider, a.other_collider, on, a.at, a.n, impulse, a.gap};
    }
    int count() const { return count_; }
    const Row& operator[](int k) const { return rows_[k]; }

  private:
    void grow() {
        Buffer<Row> old;
        old.swap(rows_);
        rows_.resize(2 * old.size());
        for (int k = 0; k < count_; ++k) rows_[k] = old[k];
    }
    Buffer<Row> rows_{kReserved};
    int count_ = 0;
};

// What a solve changes: normal impulses and bounds of joints; these and friction; or the impulses
// that only move bodies apart.
enum class Solve { normals, all, push };
template <Solve What>
constexpr bool push = What == Solve::push;

template <class S>
class Sweeper {
  public:
    Sweeper(const Forest& forest, const Work<S>* w, ContactScratch<S>& scratch)
        : f(forest), work(w), c(scratch) {}

    // Bodies on the way to a row, and how they answer.
    void prepare() {
        for (int i = 0; i < f.nb; ++i) c.marked[i] = 0;
        const auto mark = [&](int i) {
            for (; i >= 0 && !c.marked[i]; i = f.body[i].parent) c.marked[i] = 1;
        };
        for (int k = 0; k < c.contacts; ++k) {
            mark(c.contact[k].body);
            mark(c.contact[k].other);
        }
        for (int k = 0; k < c.limits; ++k) mark(c.limit[k].body);
        c.marks = 0;
        for (int i = 0; i < f.nb; ++i)
            if (c.marked[i]) c.path[c.marks++] = i;
        mobilities(f, work, c.give.data(), c.marked.data(), c.T.data());
        for (int k = 0; k < c.contacts; ++k) respond(c.contact[k]);
        for (int k = 0; k < c.limits; ++k) respond(c.limit[k]);
        clear(c.real);
        clear(c.apart);
    }

    // Limits from row `first` on have come while others were solved: what was found so far stays.
    void prepare_more(int first) {
        for (int k = first; k < c.limits; ++k)
            for (int i = c.limit[k].body; i >= 0 && !c.marked[i]; i = f.body[i].parent) {
                c.marked[i] = 1;
                c.real.W[i] = c.apart.W[i] = zero_wrench<S>();
                c.real.j[i] = c.apart.j[i] = zero3<S>();
            }
        c.marks = 0;
        for (int i = 0; i < f.nb; ++i)
            if (c.marked[i]) c.path[c.marks++] = i;
        mobilities(f, work, c.give.data(), c.marked.data(), c.T.data());
        for (int k = first; k < c.limits; ++k) respond(c.limit[k]);
    }

    // Start from the impulses of the step before.
    void warm() {
        Flow<S>& w = c.real;
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& x = c.contact[k];
            const Vec3<S> p = x.ln * x.n + x.lt * x.t + x.lu * x.u;
            add(w.W[x.body], impulse_at(x.r, p));
            if (x.other >= 0) add(w.W[x.other], impulse_at(x.r_other, zero3<S>() - p));
        }
        for (int k = 0; k < c.limits; ++k) {
            const LimitRow<S>& x = c.limit[k];
            w.j[x.body] = w.j[x.body] + x.l * x.g;
        }
        for (int k = c.marks - 1; k >= 0; --k) {
            const int i = c.path[k], p = f.body[i].parent;
            if (p >= 0) add(w.W[p], sent_up(i, w.W[i], w.j[i]));
        }
    }

    // Sweeps until every copy has settled. Between sweeps the impulses go on where the sweeps lead,
    // by conjugate directions (Silcowitz et al. 2010): many sweeps become few.
    template <Solve What>
    void solve(int sweeps, MaskOf<S> active) {
        const S zero(Element<S>(0)), one(Element<S>(1));
        S before = zero;
        for (int k = 0; k < sweeps && any(active); ++k) {
            if (k) hold<What>();
            else hold_first<What>();
            change = zero;
            walk<What>(active);
            // there and back: what one end of a pile feels reaches the other in one sweep
            for (int g = 0; g < c.groups; ++g)
                solve_pair<What>(c.group[k % 2 ? c.groups - 1 - g : g], active);
            active = active & (S(Element<S>(kSettled)) < change);
            if (k + 1 == sweeps || !any(active)) break;
            const S size = step_size<What>();
            const S beta = select(size < before, size / larger(before, S(Element<S>(1e-30))), zero);
            before = size;
            go_on<What>(select(active & (beta < one), beta, zero));
        }
    }

    // Joint velocities caused by a flow.
    void rates(Flow<S>& w, S* dv) {
        for (int i = 0; i < f.nb; ++i) {
            const Body& b = f.body[i];
            Motion<S> m = zero_motion<S>();
            if (b.parent >= 0) m = shift(w.m[b.parent], work[i].r);
            const Wrench<S> W = c.marked[i] ? w.W[i] : zero_wrench<S>();
            const Vec3<S> j = c.marked[i] ? w.j[i] : zero3<S>();
            const Motion<S> o = w.m[i] = down(b, work[i].R, c.give[i], m, W, j);
            if (b.kind == Kind::free) {
                store(dv + b.v, o.a);
                store(dv + b.v + 3, tmul(work[i].R, o.al));
            } else if (b.kind == Kind::ball) {
                store(dv + b.v, tmul(work[i].R, o.al - m.al));
            } else {
                const Vec3<S> d = b.kind == Kind::hinge ? o.al - m.al : o.a - m.a;
                dv[b.v] = dot(axis_of(work[i].R), d);
            }
        }
    }

    // Normal velocity of a contact with the present impulses; rates() came before.
    S normal_velocity(const Contact<S>& x) const {
        S v = dot(x.n, point_velocity(c.base[x.body] + c.real.m[x.body], x.r));
        if (x.other >= 0)
            v = v - dot(x.n, point_velocity(c.base[x.other] + c.real.m[x.other], x.r_other));
        return v;
    }

    // Rate of a limit's slack under a set of motions.
    S slack_rate(const LimitRow<S>& x, const Motion<S>* m) const {
        const Body& b = f.body[x.body];
        Motion<S> p = zero_motion<S>();
        if (b.parent >= 0) p = shift(m[b.parent], work[x.body].r);
        return along(b, work[x.body].R, x.g, m[x.body], p);
    }

  private:
    // ---- conjugate directions

    template <Solve What, class Visit>
    void each_row(Visit visit) {
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& x = c.contact[k];
            visit(push<What> ? x.push : x.ln, x.old[0], x.along[0], x.inv_n);
            if (What != Solve::all) continue;
            visit(x.lt, x.old[1], x.along[1], x.slip);
            visit(x.lu, x.old[2], x.along[2], x.slip);
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& x = c.limit[k];
            visit(push<What> ? x.push : x.l, x.old, x.along, x.inv);
        }
    }
    template <Solve What>
    void hold() {
        each_row<What>([](S& l, S& old, S&, S&) { old = l; });
    }
    template <Solve What>
    void hold_first() {
        each_row<What>([](S& l, S& old, S& along, S&) {
            old = l;
            along = S(Element<S>(0));
        });
    }
    // of the last sweep, squared, as an energy
    template <Solve What>
    S step_size() {
        S sum(Element<S>(0));
        each_row<What>([&](S& l, S& old, S&, S& inv) { sum = sum + (l - old) * (l - old) / inv; });
        return sum;
    }
    // l += beta along, along = beta along + the last step; beta is 0 in copies that start anew
    template <Solve What>
    void go_on(S beta) {
        Flow<S>& w = flow<What>();
        for (int k = 0; k < c.marks; ++k) w.fresh[c.path[k]] = zero_wrench<S>();
        const auto advance = [&](S& l, S& old, S& along) {
            const S more = beta * along;
            along = more + (l - old);
            l = l + more;
            return more;
        };
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& x = c.contact[k];
            Vec3<S> p;
            if constexpr (What != Solve::all) {
                p = advance(push<What> ? x.push : x.ln, x.old[0], x.along[0]) * x.n;
            } else {
                const S n = advance(x.ln, x.old[0], x.along[0]);
                const S t = advance(x.lt, x.old[1], x.along[1]);
                const S u = advance(x.lu, x.old[2], x.along[2]);
                p = n * x.n + t * x.t + u * x.u;
            }
            add(w.fresh[x.body], impulse_at(x.r, p));
            if (x.other >= 0) add(w.fresh[x.other], impulse_at(x.r_other, zero3<S>() - p));
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& x = c.limit[k];
            const S more = advance(push<What> ? x.push : x.l, x.old, x.along);
            const Vec3<S> j = more * x.g;
            w.j[x.body] = w.j[x.body] + j;
            const int p = f.body[x.body].parent;
            if (p >= 0) add(w.fresh[p], sent_up(x.body, zero_wrench<S>(), j));
        }
        for (int k = c.marks - 1; k >= 0; --k) {
            const int i = c.path[k], p = f.body[i].parent;
            add(w.W[i], w.fresh[i]);
            if (p >= 0) add(w.fresh[p], sent_up(i, w.fresh[i], zero3<S>()));
        }
    }

    static void add(Wrench<S>& a, const Wrench<S>& b) { a = a + b; }
    void clear(Flow<S>& w) {
        for (int k = 0; k < c.marks; ++k) {
            w.W[c.path[k]] = zero_wrench<S>();
            w.j[c.path[k]] = zero3<S>();
        }
    }
    Wrench<S> sent_up(int i, const Wrench<S>& w, const Vec3<S>& j) const {
        return shift(up(f.body[i], work[i].R, c.give[i], w, j), work[i].r);
    }
    Motion<S> come_down(const Flow<S>& w, int i) const {
        const Body& b = f.body[i];
        Motion<S> m = zero_motion<S>();
        if (b.parent >= 0) m = shift(w.m[b.parent], work[i].r);
        return down(b, work[i].R, c.give[i], m, w.W[i], w.j[i]);
    }
    // rate along g of a joint between motions of its body and of its parent (at the joint)
    static S along(const Body& b, const Mat3<S>& R, const Vec3<S>& g, const Motion<S>& m,
                   const Motion<S>& p) {
        if (b.kind == Kind::ball) return dot(g, m.al - p.al);
        const Vec3<S> d = b.kind == Kind::hinge ? m.al - p.al : m.a - p.a;
        return g.x * dot(axis_of(R), d);
    }

    // ---- responses

    void respond(Contact<S>& x) {
        const Vec3<S> d[3] = {x.n, x.t, x.u};
        for (int k = 0; k < 3; ++k) {
            if (x.other < 0) x.mine[k] = c.T[x.body] * impulse_at(x.r, d[k]);
            else both(x, d[k], x.mine[k], x.theirs[k]);
        }
        condense(x);
    }
    // motions of two bodies for an impulse between them
    void both(const Contact<S>& x, const Vec3<S>& d, Motion<S>& mine, Motion<S>& theirs) {
        // up both ways to where they meet, c.apart.W serving as paper
        Wrench<S>* W = c.apart.W.data();
        Motion<S>* m = c.apart.m.data();
        int a = x.body, b = x.other;
        Wrench<S> wa = impulse_at(x.r, d), wb = impulse_at(x.r_other, zero3<S>() - d);
        std::int32_t* way = c.way.data();
        int count = 0;
        while (a != b) {
            // the later body cannot be an ancestor of the other
            int& i = a > b ? a : b;
            Wrench<S>& w = a > b ? wa : wb;
            W[i] = w;
            way[count++] = i;
            const int p = f.body[i].parent;
            w = p >= 0 ? sent_up(i, w, zero3<S>()) : zero_wrench<S>();
            i = p;
        }
        if (a >= 0) m[a] = c.T[a] * (wa + wb);
        while (count) {
            const int i = way[--count];
            Motion<S> p = zero_motion<S>();
            if (f.body[i].parent >= 0) p = shift(m[f.body[i].parent], work[i].r);
            m[i] = down(f.body[i], work[i].R, c.give[i], p, W[i], zero3<S>());
        }
        mine = m[x.body];
        theirs = m[x.other];
    }
    void respond(LimitRow<S>& x) {
        using T = Element<S>;
        const int i = x.body, p = f.body[i].parent;
        Motion<S> m = zero_motion<S>();
        if (p >= 0) m = shift(c.T[p] * sent_up(i, zero_wrench<S>(), x.g), work[i].r);
        const Motion<S> o = down(f.body[i], work[i].R, c.give[i], m, zero_wrench<S>(), x.g);
        x.inv = S(T(1)) / larger(along(f.body[i], work[i].R, x.g, o, m), S(T(1e-30)));
    }

    // ---- the walk

    template <Solve What>
    Flow<S>& flow() {
        return push<What> ? c.apart : c.real;
    }
    template <Solve What>
    Motion<S> total(int i) {
        if constexpr (What == Solve::push) return c.apart.m[i];
        else return c.base[i] + c.real.m[i];
    }
    void climb(Flow<S>& w, int i) {
        const int p = f.body[i].parent;
        if (p < 0) return;
        const Wrench<S> sent = sent_up(i, w.fresh[i], zero3<S>());
        add(w.W[p], sent);
        add(w.fresh[p], sent);
        w.m[p] = w.m[p] + c.T[p] * sent;
    }

    template <Solve What>
    POISE_NOINLINE void walk(const MaskOf<S>& active) {
        Flow<S>& w = flow<What>();
        int at = -1;
        for (int k = 0; k < c.marks; ++k) {
            const int i = c.path[k], p = f.body[i].parent;
            for (; at != p; at = f.body[at].parent) climb(w, at);
            w.m[i] = come_down(w, i);
            w.fresh[i] = zero_wrench<S>();
            for (int x = c.bound[i]; x >= 0; x = c.limit[x].next) limit<What>(c.limit[x], active);
            if (c.head[i] >= 0) {
                Motion<S> m = total<What>(i), unused;
                Wrench<S> sum = zero_wrench<S>(), none;
                const Motion<S> start = m;
                touches<What, false>(c.head[i], active, m, unused, sum, none);
                w.m[i] = {w.m[i].al + (m.al - start.al), w.m[i].a + (m.a - start.a)};
                add(w.W[i], sum);
                add(w.fresh[i], sum);
            }
            at = i;
        }
        for (; at >= 0; at = f.body[at].parent) climb(w, at);
    }

    template <Solve What>
    void limit(LimitRow<S>& x, const MaskOf<S>& active) {
        Flow<S>& w = flow<What>();
        const int i = x.body, p = f.body[i].parent;
        const Body& b = f.body[i];
        Motion<S> m = total<What>(i), above = zero_motion<S>();
        if (p >= 0) above = shift(total<What>(p), work[i].r);
        const S rate = along(b, work[i].R, x.g, m, above);
        const S dl = solve_push(rate, push<What> ? x.push_bound : x.bound, x.inv, x.on & active,
                                push<What> ? x.push : x.l);
        const Vec3<S> j = dl * x.g;
        w.j[i] = w.j[i] + j;
        note(dl, x.inv);
        if (p >= 0) {
            const Wrench<S> sent = sent_up(i, zero_wrench<S>(), j);
            add(w.W[p], sent);
            add(w.fresh[p], sent);
            w.m[p] = w.m[p] + c.T[p] * sent;
        }
        w.m[i] = come_down(w, i);
    }

    void note(S dl, S inv) {
        const S size = select(dl < S(Element<S>(0)), -dl, dl);
        change = larger(change, size / inv);
    }

    // A chain of contacts of the same bodies: m and o are the motions of the bodies, the wrenches
    // gather what they receive. All normal rows come before friction: it would hold points that the
    // next normal row still moves, and the two would work against each other.
    template <Solve What, bool Both>
    POISE_INLINE void touches(int first, const MaskOf<S>& active, Motion<S>& m, Motion<S>& o,
                              Wrench<S>& sum, Wrench<S>& sum_other) {
        const auto relative = [&](const Contact<S>& x) {
            Vec3<S> v = point_velocity(m, x.r);
            if constexpr (Both) v = v - point_velocity(o, x.r_other);
            return v;
        };
        const auto move = [&](const Contact<S>& x, int k, S dl) {
            add_scaled(m, dl, x.mine[k]);
            if constexpr (Both) add_scaled(o, dl, x.theirs[k]);
        };
        const auto receive = [&](const Contact<S>& x, const Vec3<S>& impulse) {
            sum = sum + impulse_at(x.r, impulse);
            if constexpr (Both) sum_other = sum_other + impulse_at(x.r_other, zero3<S>() - impulse);
        };
        for (int k = first; k >= 0; k = c.contact[k].next) {
            Contact<S>& x = c.contact[k];
            S& l = push<What> ? x.push : x.ln;
            const S dl = solve_push(dot(x.n, relative(x)) + x.soft * l,
                                    push<What> ? x.push_bound : x.bound, x.inv_n, x.on & active, l);
            note(dl, x.inv_n);
            move(x, 0, dl);
            receive(x, dl * x.n);
        }
        for (int k = first; k >= 0 && What == Solve::all; k = c.contact[k].next) {
            Contact<S>& x = c.contact[k];
            const Vec3<S> v = relative(x);
            S dt, du;
            solve_friction(x, dot(x.t, v), dot(x.u, v), x.on & active, dt, du);
            note(dt, x.tt);
            note(du, x.uu);
            move(x, 1, dt);
            move(x, 2, du);
            receive(x, dt * x.t + du * x.u);
        }
    }

    // All contacts between two bodies.
    template <Solve What>
    POISE_NOINLINE void solve_pair(int first, const MaskOf<S>& active) {
        Flow<S>& w = flow<What>();
        const int a = c.contact[first].body, b = c.contact[first].other;
        descend(w, a);
        descend(w, b);
        Motion<S> m = total<What>(a), o = total<What>(b);
        Wrench<S> sum = zero_wrench<S>(), sum_other = zero_wrench<S>();
        touches<What, true>(first, active, m, o, sum, sum_other);
        ascend(w, a, sum);
        ascend(w, b, sum_other);
    }
    // the present motion of a body, along its way from the root
    void descend(Flow<S>& w, int i) {
        std::int32_t* way = c.way.data();
        int count = 0;
        for (; i >= 0; i = f.body[i].parent) way[count++] = i;
        while (count) {
            const int k = way[--count];
            w.m[k] = come_down(w, k);
        }
    }
    void ascend(Flow<S>& w, int i, Wrench<S> sum) {
        for (; i >= 0; i = f.body[i].parent) {
            add(w.W[i], sum);
            if (f.body[i].parent >= 0) sum = sent_up(i, sum, zero3<S>());
        }
    }

    const Forest& f;
    const Work<S>* work;
    ContactScratch<S>& c;
    S change{};
};

}  // namespace poise::inline POISE_ISA
