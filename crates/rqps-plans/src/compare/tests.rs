use super::*;

fn scan(alias: &str) -> PlanNode {
    PlanNode { alias: Some(alias.to_owned()), ..PlanNode::of("Seq Scan") }
}

fn join(kind: &str, outer: PlanNode, inner: PlanNode) -> PlanNode {
    PlanNode { joins: true, rows: Some(1.0), children: vec![outer, inner], ..PlanNode::of(kind) }
}

fn check(old: &PlanNode, new: &PlanNode, class: PlanClass, note: &str) -> Difference {
    let found = compare(old, new);
    assert_eq!(found.class, class, "{found:?}");
    assert!(found.notes.iter().any(|text| text.contains(note)) || note.is_empty(), "{found:?}");
    found
}

#[test]
fn an_order_of_joins_is_more_than_their_inputs() {
    let [a, b, c] = ["a", "b", "c"].map(scan);
    let hash = |outer: &PlanNode, inner: &PlanNode| join("Hash Join", outer.clone(), inner.clone());
    let first = hash(&hash(&a, &b), &c);
    check(&first, &hash(&a, &hash(&b, &c)), PlanClass::JoinOrder, "b is now joined with c");
    check(&first, &hash(&hash(&b, &a), &c), PlanClass::JoinMethod, "changes its inputs");
    let nested = join("Nested Loop", hash(&a, &b), c.clone());
    check(&first, &nested, PlanClass::JoinMethod, "a, b with c: Hash Join -> Nested Loop");
    let turned = join("Nested Loop", c, hash(&a, &b));
    check(&nested, &turned, PlanClass::JoinOrder, "c is read first");
}

#[test]
fn blind_estimates_are_a_warning_of_their_own() {
    let [a, b, c] = ["a", "b", "c"].map(scan);
    let nested = |outer: PlanNode, inner: PlanNode| join("Nested Loop", outer, inner);
    let old = nested(nested(a.clone(), b.clone()), c.clone());
    let new = nested(a, nested(b, c));
    let found = check(&old, &new, PlanClass::JoinOrder, "");
    assert!(found.warnings[0].contains("one row everywhere"), "{found:?}");
    let mut sees = new.clone();
    sees.rows = Some(900.0);
    assert!(compare(&old, &sees).warnings.is_empty());
}

#[test]
fn workers_alone_are_parallelism() {
    let serial = PlanNode { children: vec![scan("a")], ..PlanNode::of("Aggregate") };
    let scan = PlanNode { parallel: true, ..scan("a") };
    let partial = PlanNode { children: vec![scan], ..PlanNode::of("Partial Aggregate") };
    let gather = PlanNode { children: vec![partial], ..PlanNode::of("Gather") };
    let parallel = PlanNode { children: vec![gather], ..PlanNode::of("Finalize Aggregate") };
    check(&serial, &parallel, PlanClass::Parallelism, "it becomes parallel");
    check(&parallel, &serial, PlanClass::Parallelism, "no longer parallel");
}

#[test]
fn costs_count_from_a_ratio_on() {
    let of = |cost: f64| PlanNode { cost: Some(cost), ..scan("a") };
    check(&of(100.0), &of(140.0), PlanClass::Same, "");
    check(&of(100.0), &of(150.0), PlanClass::Estimates, "cost 100 -> 150");
    check(&of(150.0), &of(99.0), PlanClass::Estimates, "");
}

#[test]
fn direction_index_and_keys_are_compared() {
    let of = |direction: &str, key: &str| {
        let mut node = PlanNode { direction: Some(direction.to_owned()), ..scan("a") };
        node.condition("Sort Key", key);
        node
    };
    check(&of("Forward", "x"), &of("Backward", "x"), PlanClass::AccessPath, "Backward");
    check(&of("Forward", "x"), &of("Forward", "x DESC"), PlanClass::Conditions, "x DESC");
}

#[test]
fn names_of_partitions_are_those_of_their_tables() {
    let part = |relation: &str, alias: &str| {
        let mut node = PlanNode { relation: Some(relation.to_owned()), ..scan(alias) };
        node.condition("Filter", "(day > 1.5)");
        node
    };
    let plan = |aliases: [&str; 2], key: &str| {
        let children = vec![part("p_2024", aliases[0]), part("p_2025", aliases[1])];
        let append = PlanNode { children, ..PlanNode::of("Append") };
        let other = PlanNode { relation: Some("customer".to_owned()), ..scan("c") };
        let mut root = join("Hash Join", append, other);
        root.condition("Hash Cond", key);
        root
    };
    let old = plan(["p_2024", "p_2025"], "(p_2024.customer = c.id)");
    let new = plan(["p_1", "p_2"], "(p.customer = c.id)");
    check(&old, &new, PlanClass::Same, "");
    let other = plan(["p_1", "p_2"], "(p.customer = c.other)");
    check(&old, &other, PlanClass::Conditions, "customer.id");
}
