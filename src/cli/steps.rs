//! Long steps of a sandbox engine, shown by the report.

use crate::report::progress::Steps;
use crate::sandbox::Progress;

impl Progress for Steps {
    fn begin(&self, step: &str) {
        Self::begin(self, step);
    }

    fn at(&self, detail: &str) {
        Self::at(self, detail);
    }

    fn end(&self, outcome: &str) {
        Self::end(self, outcome);
    }
}
