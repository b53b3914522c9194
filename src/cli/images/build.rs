//! `tidemill images build`

use std::collections::BTreeSet;

use crate::cli::images::{folders, short, wanted};
use crate::cli::{Context, Exit};
use crate::diagnostic::{Diagnostic, Result, nearest};
use crate::report::progress::Steps;
use crate::sandbox::Engine as _;
use crate::sandbox::docker::Docker;
use crate::workflow::image::Image;

/// Arguments of `tidemill images build`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A workflow, or a folder of images/; without any, what all workflows need
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Also the folders of images/ that no workflow uses
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Carries it out. Every image is tried; the exit code tells whether one failed.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let wanted = wanted(&project).await;
    if wanted.mistakes > 0 {
        context
            .screen
            .talk("some scripts have mistakes, so what they need is not built; `tidemill check` shows them");
    }
    let spare = folders(&project);
    let images = choose(&args, wanted.images, &spare)?;
    if images.is_empty() {
        context.screen.talk("no workflow names an image");
    }
    let engine = Docker::open(&project).await?;
    let steps = Steps::new(context.screen);
    let mut exit = Exit::Succeeded;
    for image in images {
        match engine.prepare(&image, &steps).await {
            Ok(ready) => {
                let how = if ready.fresh { "made" } else { "there already" };
                context.screen.line(format!("{}  {}  {how}", image.reference(), short(&ready.digest)));
            }
            Err(diagnostic) => {
                context.screen.diagnostic(&diagnostic);
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

/// What was asked for.
fn choose(args: &Args, wanted: Vec<(Image, Vec<String>)>, spare: &BTreeSet<String>) -> Result<Vec<Image>> {
    let is_used = |folder: &String| wanted.iter().any(|(image, _)| image.reference() == folder);
    if args.names.is_empty() {
        let spare: Vec<Image> =
            spare.iter().filter(|folder| args.all && !is_used(folder)).map(Image::folder).collect();
        return Ok(wanted.into_iter().map(|(image, _)| image).chain(spare).collect());
    }
    let mut images = Vec::new();
    for name in &args.names {
        let folder = format!("images/{name}");
        let is_meant = |image: &Image, workflows: &[String]| {
            workflows.contains(name) || image.reference() == name || image.reference() == folder
        };
        let mut found: Vec<Image> = wanted
            .iter()
            .filter(|(image, workflows)| is_meant(image, workflows))
            .map(|(image, _)| image.clone())
            .collect();
        if found.is_empty() {
            found.extend(spare.iter().filter(|spare| *spare == name || **spare == folder).map(Image::folder));
        }
        if found.is_empty() {
            return Err(unknown(name, &wanted, spare));
        }
        images.extend(found);
    }
    Ok(images)
}

fn unknown(name: &str, wanted: &[(Image, Vec<String>)], spare: &BTreeSet<String>) -> Diagnostic {
    let folders = spare.iter().map(|folder| folder.trim_start_matches("images/"));
    let mut known: Vec<&str> =
        wanted.iter().flat_map(|(_, workflows)| workflows).map(String::as_str).chain(folders).collect();
    known.sort_unstable();
    known.dedup();
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Diagnostic::new("usage::unknown_image", format!("there is no workflow and no image `{name}`"))
        .help(format!("{near}there is: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], all: bool) -> Result<Vec<String>> {
        let args = Args { names: names.iter().map(|name| (*name).to_owned()).collect(), all };
        let wanted = vec![
            (Image::folder("images/data"), vec!["energy".to_owned()]),
            (Image::tag("alpine:3"), vec!["small".to_owned()]),
        ];
        let spare = ["images/data".to_owned(), "images/shell".to_owned()].into();
        let images = choose(&args, wanted, &spare)?;
        Ok(images.iter().map(|image| image.reference().to_owned()).collect())
    }

    #[test]
    fn an_image_is_meant_by_its_workflow_its_folder_or_its_name() {
        assert_eq!(chosen(&[], false).expect("all used"), ["images/data", "alpine:3"]);
        assert_eq!(chosen(&[], true).expect("all"), ["images/data", "alpine:3", "images/shell"]);
        assert_eq!(chosen(&["energy", "shell"], false).expect("two"), ["images/data", "images/shell"]);
        assert_eq!(chosen(&["images/data"], false).expect("one"), ["images/data"]);
        let unknown = chosen(&["shel"], false).expect_err("none");
        assert!(unknown.advice().unwrap_or_default().starts_with("did you mean `shell`?"), "{unknown:?}");
    }
}
