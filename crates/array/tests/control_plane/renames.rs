//! Site files that call a volume by a name that it had.

use crate::world::{Array, SITE, boot, create, media};
use array::control::{Export, NewAttributes};
use array::directory::{Access, Initiators};
use array::shard::UnitTraits;
use array::site_file::renamed_as_shown;
use site::Site;

const TARGET: &str = "iqn.2026-11.test:t";

const VOLUME: &str = r#"[[volume]]
name = "old"
pool = "p"
size = "1 MiB"
"#;

/// The site file, which shows the volume behind a target, or does not.
fn site(shows: bool) -> Site {
    let export =
        format!("[[export]]\ntarget = \"{TARGET}\"\nvolumes = [\"old\"]\ninitiators = \"any\"\n");
    let text = format!("{SITE}{VOLUME}{}", if shows { &export[..] } else { "" });
    site::parse("test.toml", &text).unwrap()
}

async fn is_followed(array: &Array, shows: bool) -> bool {
    let renamed = renamed_as_shown(&site(shows), array).await.unwrap();
    renamed.get("old").is_some_and(|now| now == "new")
}

#[test]
fn hosts_of_an_applied_file_get_no_volume_that_only_had_the_name() {
    boot(&media(), 0, async |array| {
        create(&array, "old").await;
        let renaming = NewAttributes {
            name: Some("new".to_owned()),
            ..NewAttributes::default()
        };
        array
            .change_attributes("old".to_owned(), renaming)
            .await
            .unwrap();
        assert!(is_followed(&array, false).await);
        assert!(!is_followed(&array, true).await);
        let shown = Export {
            target: TARGET.to_owned(),
            volumes: vec!["new".to_owned()],
            luns: vec![0],
            uuids: Vec::new(),
            access: Access {
                initiators: Initiators::Any,
                ..Access::default()
            },
            traits: UnitTraits::default(),
            withheld: None,
        };
        array.create_export(shown).await.unwrap();
        assert!(is_followed(&array, true).await, "it shows it already");
    });
}
