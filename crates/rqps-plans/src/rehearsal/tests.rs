use super::*;

struct Fixed(Result<PlanNode, PlanError>);

impl Planner for Fixed {
    fn explain(&mut self, _: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        self.0.clone().map(|plan| vec![(String::new(), plan)])
    }
}

fn plan(kind: &str) -> Result<PlanNode, PlanError> {
    Ok(PlanNode { alias: Some("a".to_owned()), ..PlanNode::of(kind) })
}

fn refused(words: &str) -> Result<PlanNode, PlanError> {
    Err(PlanError::Refused(words.to_owned()))
}

fn check(
    [old, new, source]: [Result<PlanNode, PlanError>; 3],
    lacking: &[&str],
    class: PlanClass,
) -> Judged {
    let mut rehearsal = Rehearsal {
        old_name: "old".to_owned(),
        new_name: "new".to_owned(),
        old: Box::new(Fixed(old)),
        new: Box::new(Fixed(new)),
        source: Some(Box::new(Fixed(source))),
        notes: Vec::new(),
        lacking: lacking.iter().map(|object| object.to_string()).collect(),
    };
    let statement = Statement { number: 1, text: "SELECT 1".to_owned(), ..Statement::default() };
    let mut report = judge(&[statement], &mut rehearsal, &mut |_| {}).unwrap();
    let judged = report.statements.remove(0);
    assert_eq!(judged.class, class, "{judged:?}");
    judged
}

#[test]
fn an_error_on_one_side_is_a_finding_unless_something_lacks_there() {
    let words = "relation \"fee\" does not exist";
    let found = check([plan("Seq Scan"), refused(words), plan("Seq Scan")], &[], PlanClass::Error);
    assert_eq!(found.new_error.as_deref(), Some(words));
    let lacking = ["postgres 18 cannot make table \"fee\": no such type"];
    check([plan("Seq Scan"), refused(words), plan("Seq Scan")], &lacking, PlanClass::NotCovered);
    check([refused(words), refused(words), refused(words)], &[], PlanClass::NotCovered);
    let utility = || Err(PlanError::NotCovered("REFRESH has no plan".to_owned()));
    check([utility(), utility(), utility()], &[], PlanClass::NotCovered);
}

#[test]
fn types_of_an_answer_are_a_difference_of_versions_but_not_from_the_source() {
    let of = |types: &str| {
        let mut plan = plan("Seq Scan").unwrap();
        plan.condition(RESULT_TYPES, types);
        Ok(plan)
    };
    let (float, numeric) = ("double precision", "numeric");
    let judged = check([of(float), of(numeric), plan("Seq Scan")], &[], PlanClass::Conditions);
    assert_eq!(judged.notes, ["Result Types double precision -> Result Types numeric"]);
    check([of(float), of(float), plan("Seq Scan")], &[], PlanClass::Same);
}

#[test]
fn the_source_decides_whether_the_method_is_faithful() {
    let [seq, index] = ["Seq Scan", "Index Scan"];
    check([plan(seq), plan(index), plan(seq)], &[], PlanClass::AccessPath);
    let judged = check([plan(seq), plan(index), plan(index)], &[], PlanClass::NotFaithful);
    assert!(judged.old.is_some() && judged.new.is_some() && judged.source.is_some());
    let denied = check([plan(seq), plan(seq), refused("denied")], &[], PlanClass::Same);
    assert_eq!(denied.warnings, ["the source does not explain it: denied"]);
}
