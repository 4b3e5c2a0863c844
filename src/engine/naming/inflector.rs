//! English plurals as kro makes them: the inflector it uses, oddities included, because children, RBAC rules and users name the
//! plural (reference/kro.md section 16).

/// Plural of a kind (in any case), as kro has it. Some abbreviations come out unusable (`dns` is `dnsDNSes`); see
/// [`resource_name`].
pub fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if let Some(abbreviation) = BROKEN.iter().find(|broken| **broken == word) {
        return format!("{abbreviation}{}es", abbreviation.to_uppercase());
    }
    if PLAIN.contains(&word.as_str()) {
        return word + "s";
    }
    if ALREADY_MANY.contains(&word.as_str()) {
        return word;
    }
    if let Some((_, many)) = ALONE.iter().find(|(one, many)| *one == word || *many == word) {
        return (*many).to_owned();
    }
    compound(&word)
        .or_else(|| by_ending(&word))
        .unwrap_or_else(|| if word.ends_with('s') { word.clone() } else { format!("{word}s") })
}

/// The `names.plural` of a generated CRD: kro's plural, unless no API server would take it.
pub fn resource_name(kind: &str) -> String {
    let plural = plural(kind);
    if plural.chars().any(char::is_uppercase) { format!("{}es", kind.to_lowercase()) } else { plural }
}

/// A word that is, or ends in, an irregular one (`supermouse`); the longest ending decides.
fn compound(word: &str) -> Option<String> {
    let endings = IRREGULAR.split_whitespace().filter_map(|pair| {
        let (one, many) = pair.split_once(':').unwrap_or((pair, pair));
        replaced(word, one, many).map(|plural| (if word.ends_with(many) { many.len().max(one.len()) } else { one.len() }, plural))
    });
    endings.max_by_key(|(length, _)| *length).map(|(_, plural)| plural)
}

/// The first rule whose ending the word has.
fn by_ending(word: &str) -> Option<String> {
    ENDINGS.split_whitespace().find_map(|rule| {
        let (one, many) = rule.split_once(':')?;
        replaced(word, one, many)
    })
}

/// The word itself where it has the ending of a plural already.
fn replaced(word: &str, one: &str, many: &str) -> Option<String> {
    if word.ends_with(many) { Some(word.to_owned()) } else { word.strip_suffix(one).map(|stem| format!("{stem}{many}")) }
}

/// Network abbreviations that end in s: the inflector upper-cases them and puts both forms together.
const BROKEN: [&str; 12] = ["aes", "bss", "cmos", "des", "dns", "ess", "fcs", "https", "ids", "ips", "mpls", "pots"];

/// Abbreviations that the rules below would otherwise bend.
const PLAIN: [&str; 3] = ["eia", "ssh", "tia"];

/// Irregular only as whole words (`box` is not an `ox`).
const ALONE: &[(&str, &str)] = &[("alias", "aliases"), ("axis", "axes"), ("die", "dice"), ("louse", "lice"), ("ox", "oxen")];

/// Second plurals of irregular words.
const ALREADY_MANY: [&str; 3] = ["adieus", "formulae", "octopi"];

/// Irregular words, `singular:plural`, or one form for both.
const IRREGULAR: &str = "
    aircraft beef bison deer equipment fish graffiti information money moose police rice salmon sheep shrimp swine trout tuna you
    child:children foot:feet goose:geese human:humans man:men mouse:mice person:people tooth:teeth thief:thieves
    adieu:adieux bureau:bureaus fabliau:fabliaux
    criterion:criteria ganglion:ganglia lexicon:lexica mitochondrion:mitochondria noumenon:noumena phenomenon:phenomena taxon:taxa
    curriculum:curriculums pretorium:pretoriums stadium:stadiums agenda:agendas quota:quotas formula:formulas vedalia:vedalias
    alumnus:alumni bacillus:bacilli cactus:cacti coccus:cocci focus:foci locus:loci nucleus:nuclei radius:radii syllabus:syllabi
    corpus:corpora genus:genera octopus:octupuses
    alumna:alumnae differentia:differentiae larva:larvae minutia:minutiae postcava:postcavae praecava:praecavae uva:uvae
    vertebra:vertebrae vita:vitae
    apex:apices appendix:appendices codex:codices helix:helices index:indices latex:latices radix:radices vertex:vertices
    vortex:vortices
    basis:bases crisis:crises ellipsis:ellipses genesis:geneses oasis:oases testis:testes thesis:theses
    buffalo:buffaloes potato:potatoes tomato:tomatoes dwarf:dwarfs topaz:topazes";

/// Endings, the first that fits decides.
const ENDINGS: &str = "
    tive:tives eaf:eaves oaf:oaves afe:aves arf:arves rfe:rves rf:rves lf:lves fe:ves
    ay:ays ey:eys oy:oys quy:quies uy:uys y:ies eau:eaux
    bula:bulae dula:bulae lula:bulae nula:bulae vula:bulae hedron:hedra
    ium:ia seum:seums eum:ea oum:oa stracum:straca dum:da elum:ela ilum:ila olum:ola ulum:ula llum:lla ylum:yla imum:ima
    ernum:erna gnum:gna brum:bra crum:cra terum:tera serum:sera trum:tra antum:anta atum:ata entum:enta etum:eta itum:ita
    otum:ota utum:uta ctum:cta ovum:ova
    trix:trices iasis:iases mesis:meses kinesis:kineses resis:reses gnosis:gnoses opsis:opses ysis:yses
    ouse:ouses lause:lauses us:uses ch:ches io:ios sh:shes ss:sses ez:ezzes iz:izzes tz:tzes zz:zzes
    ano:anos lo:los to:tos oo:oos o:oes x:xes";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::json_lines;

    #[test]
    fn show_03_plurals() {
        let inputs = json_lines("kro/vectors/plural.in.jsonl");
        let outputs = json_lines("kro/vectors/plural.out.jsonl");
        for (input, output) in inputs.iter().zip(&outputs) {
            assert_eq!(input["id"], output["id"]);
            let word = input["word"].as_str().or(input["kind"].as_str()).unwrap();
            assert_eq!(plural(word), output["plural"].as_str().unwrap(), "{word}");
        }
        println!("SHOW 03 plurals {}/{}", outputs.len(), inputs.len());
    }

    #[test]
    fn words_are_bent_as_kro_bends_them() {
        for (word, many) in [
            ("WebApp", "webapps"),
            ("supermouse", "supermice"),
            ("Human", "humans"),
            ("specimen", "specimen"),
            ("policies", "policies"),
            ("box", "boxes"),
            ("ox", "oxen"),
            ("dogfish", "dogfish"),
            ("spreadsheet", "spreadsheets"),
            ("analysis", "analyses"),
            ("myhttps", "myhttps"),
            ("dns", "dnsDNSes"),
        ] {
            assert_eq!(plural(word), many, "{word}");
        }
    }

    #[test]
    fn a_resource_name_is_always_usable() {
        for word in BROKEN {
            assert_eq!(resource_name(word), format!("{word}es"));
        }
        assert_eq!(resource_name("NetworkPolicy"), "networkpolicies");
    }
}
