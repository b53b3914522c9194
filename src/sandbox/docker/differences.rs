//! What an engine says of a container, against what it was asked for.

use bollard::models::HostConfig;
use serde_json::Value;

/// Everything that was asked for and is not so, each as `NAME: asked for X, found Y`. What was not asked for is not
/// looked at.
pub(super) fn differences(asked: &HostConfig, found: &HostConfig) -> Vec<String> {
    let (Ok(Value::Object(asked)), Ok(found)) = (serde_json::to_value(asked), serde_json::to_value(found))
    else {
        return vec!["what the engine says cannot be compared".to_owned()];
    };
    let differ = asked.iter().filter_map(|(name, asked)| {
        let found = found.get(name).unwrap_or(&Value::Null);
        let same = holds(&plain(name, asked), &plain(name, found));
        (!same).then(|| format!("{name}: asked for {asked}, found {found}"))
    });
    differ.collect()
}

/// Whether all that was asked for is found. Engines add what they fill in themselves to lists of things.
fn holds(asked: &Value, found: &Value) -> bool {
    match (asked, found) {
        (Value::Object(asked), Value::Object(found)) => {
            asked.iter().all(|(name, asked)| holds(asked, found.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(asked), Value::Array(found)) => {
            asked.len() == found.len() && asked.iter().all(|one| found.iter().any(|other| holds(one, other)))
        }
        (Value::Object(asked), Value::Null) => asked.is_empty(),
        (Value::Array(asked), Value::Null) => asked.is_empty(),
        (Value::Bool(false), Value::Null) => true,
        _ => asked == found,
    }
}

/// The one way to write what engines write in several.
fn plain(name: &str, value: &Value) -> Value {
    let texts = |change: &dyn Fn(&str) -> String| match value {
        Value::Array(texts) => Value::Array(
            texts.iter().map(|text| text.as_str().map_or(text.clone(), |text| change(text).into())).collect(),
        ),
        other => other.clone(),
    };
    match name {
        "CapDrop" | "CapAdd" => {
            texts(&|name| name.to_ascii_uppercase().trim_start_matches("CAP_").to_owned())
        }
        "SecurityOpt" => texts(&|option| match option.replace(':', "=").as_str() {
            "no-new-privileges=true" => "no-new-privileges".to_owned(),
            other => other.to_owned(),
        }),
        // Where it has no word of its own, an engine writes the mode as an empty one.
        "PidMode" | "UTSMode" if value.is_null() => Value::String(String::new()),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> HostConfig {
        HostConfig {
            memory: Some(100),
            cap_drop: Some(vec!["ALL".into()]),
            security_opt: Some(vec!["no-new-privileges".into()]),
            readonly_rootfs: Some(true),
            privileged: Some(false),
            ..HostConfig::default()
        }
    }

    #[test]
    fn the_same_in_other_words_is_no_difference() {
        let found = HostConfig {
            cap_drop: Some(vec!["all".into()]),
            security_opt: Some(vec!["no-new-privileges:true".into()]),
            shm_size: Some(7),
            privileged: None,
            ..asked()
        };
        assert_eq!(differences(&asked(), &found), Vec::<String>::new());
    }

    #[test]
    fn a_difference_is_told_with_both_sides() {
        let found = HostConfig { memory: Some(0), readonly_rootfs: None, cap_drop: None, ..asked() };
        assert_eq!(
            differences(&asked(), &found),
            [
                "Memory: asked for 100, found 0",
                "CapDrop: asked for [\"ALL\"], found null",
                "ReadonlyRootfs: asked for true, found null",
            ]
        );
    }
}
