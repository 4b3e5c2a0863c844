//! plinth's chart, as this executable carries it: it goes wherever the executable goes as a component.

use plinth_api::crds;
use plinth_releasechannel::program::Chart;

/// Files of the chart but its kinds.
const FILES: [(&str, &str); 3] = [
    ("Chart.yaml", include_str!("../../../distributions/plinth/charts/plinth/Chart.yaml")),
    ("templates/controller.yaml", include_str!("../../../distributions/plinth/charts/plinth/templates/controller.yaml")),
    ("values.yaml", include_str!("../../../distributions/plinth/charts/plinth/values.yaml")),
];

/// All of them.
pub(super) fn files() -> Chart {
    let crds = crds::of_the_chart().into_iter().map(|crd| (format!("crds/{}.yaml", crd.name), crd.yaml.to_owned()));
    Chart(FILES.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).chain(crds).collect())
}
