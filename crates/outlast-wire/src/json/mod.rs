//! JSON as text: the scanner that validates it and the writer.

pub(crate) mod scan;
pub(crate) mod skim;
pub(crate) mod write;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    /// Any JSON value of moderate size.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Any JSON object of moderate size.
    pub(crate) fn any_object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map(any::<String>(), any_json(), 0..6)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }
}
