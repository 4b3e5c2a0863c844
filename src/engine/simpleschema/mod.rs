//! kro's SimpleSchema: from short type strings to a structural schema.
