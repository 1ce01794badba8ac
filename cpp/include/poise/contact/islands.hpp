// Islands: trees that the contacts of a step join. What is solved in one does not change another,
// so each has its own tolerances and ends on its own: a character moves alike, to rounding, whether
// or not others are in the scene.
//
// Numbers and masks of an island are kept at the roots of its trees, alike at all of them. Copies
// in lanes have islands of their own.
#pragma once

#include "poise/contact/constraints.hpp"
#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

template <class S>
class Islands {
  public:
    static constexpr int lanes = Traits<S>::lanes;
    using Masks = Buffer<MaskOf<S>>;  // (nb)
    using Numbers = Buffer<S>;        // (nb)

    explicit Islands(int nb)
        : tree_(nb), first_(nb), label_(static_cast<std::size_t>(nb) * lanes) {}

    // Of these contacts, whether they push or only may; root (nb) is that of each body.
    void find(int nb, const std::int32_t* root, const Contact<S>* contact, int contacts) {
        root_ = root;
        trees_ = 0;
        joined_ = false;
        for (int i = 0; i < nb; ++i)
            if (root[i] == i) tree_[trees_++] = i;
        for (int t = 0; t < trees_; ++t)
            for (int lane = 0; lane < lanes; ++lane) label(tree_[t], lane) = tree_[t];
        for (int k = 0; k < contacts; ++k) {
            const Contact<S>& a = contact[k];
            if (a.other < 0 || root[a.body] == root[a.other]) continue;
            joined_ = true;
            for (int lane = 0; lane < lanes; ++lane)
                if (get(a.on, lane)) join(root[a.body], root[a.other], lane);
        }
        islands_ = 0;
        for (int t = 0; t < trees_; ++t) {
            const int i = tree_[t];
            bool leads = false;
            for (int lane = 0; lane < lanes; ++lane) {
                if (joined_) label(i, lane) = find_first(i, lane);
                leads = leads || label(i, lane) == i;
            }
            if (leads) first_[islands_++] = i;
        }
    }

    int trees() const { return trees_; }
    int tree(int t) const { return tree_[t]; }
    int root(int body) const { return root_[body]; }
    // first roots of the islands of any copy, and that of a tree's island in one copy
    int count() const { return islands_; }
    int first(int i) const { return first_[i]; }
    int island(int tree, int lane) const { return label(tree, lane); }
    // one tree: an island is a copy
    bool single() const { return trees_ == 1; }

    void fill(Masks& m, const MaskOf<S>& value) const {
        for (int t = 0; t < trees_; ++t) m[tree_[t]] = value;
    }
    void fill(Numbers& m, const S& value) const {
        for (int t = 0; t < trees_; ++t) m[tree_[t]] = value;
    }
    // Copies with an island in the mask.
    MaskOf<S> copies(const Masks& m) const {
        auto found = constant_mask<S>(false);
        for (int t = 0; t < trees_; ++t) found = found | m[tree_[t]];
        return found;
    }

    // What is known of the trees becomes known of the islands: where any, the largest, the sum.
    void unite(Masks& m) const {
        merge(m, [](bool a, bool b) { return a || b; });
    }
    void unite_largest(Numbers& m) const {
        merge(m, [](auto a, auto b) { return a < b ? b : a; });
    }
    void unite_sums(Numbers& m) const {
        merge(m, [](auto a, auto b) { return a + b; });
    }

  private:
    std::int32_t& label(int tree, int lane) { return label_[tree * lanes + lane]; }
    std::int32_t label(int tree, int lane) const { return label_[tree * lanes + lane]; }
    int find_first(int tree, int lane) {
        while (label(tree, lane) != tree) tree = label(tree, lane) = label(label(tree, lane), lane);
        return tree;
    }
    void join(int one, int two, int lane) {
        one = find_first(one, lane), two = find_first(two, lane);
        label(one > two ? one : two, lane) = one > two ? two : one;
    }
    template <class Values, class Combine>
    void merge(Values& m, Combine combine) const {
        if (!joined_) return;
        for (int lane = 0; lane < lanes; ++lane) {
            for (int t = 0; t < trees_; ++t) {
                const int i = tree_[t], to = label(i, lane);
                if (to != i) put(m[to], lane, combine(get(m[to], lane), get(m[i], lane)));
            }
            for (int t = 0; t < trees_; ++t)
                put(m[tree_[t]], lane, get(m[label(tree_[t], lane)], lane));
        }
    }

    const std::int32_t* root_ = nullptr;
    Buffer<std::int32_t> tree_;   // roots
    Buffer<std::int32_t> first_;  // those of them that are the first of an island in any copy
    Buffer<std::int32_t> label_;  // (nb, lanes) the first root of its island
    int trees_ = 0, islands_ = 0;
    bool joined_ = false;
};

}  // namespace poise::inline POISE_ISA
