//! The door for tests, benches and fuzz targets: exactly what they use of the modules, under the same paths. Everything else
//! is private to the crate, so that the compiler finds what is used nowhere.

pub mod answers {
    pub mod edits {
        pub use crate::answers::edits::{
            EditAnswer, EditProposal, ProjectFacts, ReadingRule, UnreadableAnswer, read_edit_answer,
        };
    }
}

pub mod backend {
    pub use crate::backend::{
        Ask, AskError, AskResult, AskStep, Backends, Edits, Env, FailureBlame, FailureCause, Power,
        SharedResources, Shell, Unreachable, Usage,
    };
    pub mod breaker {
        pub use crate::backend::breaker::Breaker;
    }
    pub mod installed {
        pub use crate::backend::installed::{InstalledAgent, Login, NotUsable, ask};
    }
    pub mod loaded {
        pub use crate::backend::loaded::{
            LoadedModel, LookError, deployments, loaded, offered, offers,
        };
    }
    pub mod probe {
        pub use crate::backend::probe::{AddressRole, ProbedAddress, endpoints, probe};
    }
    pub mod replay {
        pub use crate::backend::replay::ReplayLine;
    }
    pub mod warm {
        pub use crate::backend::warm::Warmth;
    }
    pub mod world {
        pub use crate::backend::world::Look;
    }
}

pub mod cli {
    pub mod doctor {
        pub use crate::cli::doctor::{Case, DoctorReport, examine};
    }
    pub mod serve {
        pub use crate::cli::serve::serve;
    }
}

pub mod engine {
    pub use crate::engine::{
        AskRecord, Attempt, Basis, CallResult, Cause, Entry, Gate, Opinion, Status, TopTier,
        Verdict,
    };
    pub mod call {
        pub use crate::engine::call::{CallArguments, CallHost, CallRequest, Surroundings, run};
    }
    pub mod entry {
        pub use crate::engine::entry::{Entry, VERSION};
    }
    pub mod event {
        pub use crate::engine::event::{AttemptTraces, ChainPlace, Event, Listener, StoryLine};
    }
    pub mod evidence {
        pub use crate::engine::evidence::{Evidence, FollowUp, FollowUpKind};
    }
    pub mod means {
        pub use crate::engine::means::{
            Experience, LiveHeader, LiveRecord, Means, NoExperience, Recorder, SessionBudgets,
        };
    }
    pub mod policy {
        pub use crate::engine::policy::{TaskClass, TaskSize};
    }
    pub mod proposal {
        pub use crate::engine::proposal::{SiteFacts, schema};
    }
    pub mod result {
        pub use crate::engine::result::{CallResult, More, Status};
    }
    pub mod site {
        pub use crate::engine::site::{Site, SiteError};
    }
    pub mod skill {
        pub use crate::engine::skill::{
            Access, DryRunPlan, Preparation, PreparedCall, Question, RefusedCall, Skill, TierUnfit,
        };
    }
    pub mod work {
        pub use crate::engine::work::{
            AcceptedWork, Exhibit, KeepPolicy, RefusedWork, SubmittedWork, Verification,
        };
    }
}

pub mod fuzz {
    pub use crate::fuzz::{FuzzTarget, TARGETS, run};
}

pub mod gym {
    pub mod exercism {
        pub use crate::gym::exercism::read_track;
    }
    pub mod own_tasks {
        pub use crate::gym::own_tasks::{TaskLanguage, TaskSet, TaskText};
    }
    pub mod passport {
        pub use crate::gym::passport::PassportBook;
    }
    pub mod results {
        pub use crate::gym::results::ResultsFile;
    }
    pub mod task {
        pub use crate::gym::task::{GymTask, TaskKind};
    }
}

pub mod languages {
    pub use crate::languages::{ELIXIR, GO, JAVASCRIPT, Language, PYTHON, RUBY, RUST};
}

pub mod memory {
    pub use crate::memory::{Note, NoteFolder, NoteIndex, NoteQuery};
}

pub mod process {
    pub use crate::process::{
        CaptureLimits, CapturedOutput, ChildKind, Confinement, End, FinishedProcess, Guard,
        Launcher, LayeredDir, NetworkReach, NetworkRule, SandboxLevel, SandboxMode, SandboxRecord,
        SandboxRules, Scratch, Spec, StartError, Stdin, TAG_VARIABLE, Tag, WalledProject, lines,
        sweep_tagged,
    };
    pub mod shim {
        pub use crate::process::shim::run;
    }
}

pub mod redact {
    pub use crate::redact::Redactor;
}

pub mod routing {
    pub use crate::routing::{
        BackendKind, BackendSettings, BudgetSettings, CallOverrides, EditFormat, LoadedRouting,
        Model, ModelName, Origin, Route, Routing, RoutingError, Sources, Tier, TierKind, Warm,
        WarmKind, load,
    };
}

pub mod server {
    pub use crate::server::{
        App, Call, MAX_ERROR, MAX_PROGRESS, MAX_RESULT, Parameters, Server, SessionEnd, serve,
    };
}

pub mod session {
    pub use crate::session::{RecordedOutcome, SessionId, SessionLog, running_calls};
    pub mod live {
        pub use crate::session::live::{THREAD, settle};
    }
}

pub mod skills {
    pub mod tdd {
        pub mod pack {
            pub use crate::skills::tdd::pack::{PackRequest, PackedFiles, files};
        }
    }
    pub mod tier {
        pub use crate::skills::tier::{TierParams, answer};
    }
}

pub mod state {
    pub use crate::state::{StateDir, allocated_bytes};
}

pub mod team {
    pub mod definition {
        pub use crate::team::definition::{CheckRule, CheckpointDefinition};
    }
    pub mod fault {
        pub use crate::team::fault::WAKE_STEPS;
    }
    pub mod verdict {
        pub use crate::team::verdict::CheckGroup;
    }
}

pub mod verify {
    pub use crate::verify::{
        Baseline, BaselineOrigin, Bench, BuildBlame, DetectRequest, Flags, Outcome, Proof, Recheck,
        SettledRun, Suite, TestName, TestRun, TestState, TestWalls, blame, detect, run_first,
        run_settled,
    };
    pub mod sealed {
        pub use crate::verify::sealed::{FileRole, role};
    }
}

pub mod workspace {
    pub use crate::workspace::{
        ArmedSnapshot, Caps, ChangeKind, ChangeSet, CommitError, Edit, EditError, Lease, LockError,
        Mode, NotPrivate, OpenError, Point, PrivateProject, RecoveryOutcome, RestoreError, Scope,
        StateBounds, Why, Workspace, find_garbage, recover, remove_garbage,
    };
}
