//! Small projects of several ecosystems, and real runs of their tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use supervisor_process::Launcher;
use supervisor_verify::{Execution, RunEnvironment, TestRun, TestSandbox, detect};
use tokio_util::sync::CancellationToken;

pub fn run_environment(limit: Duration) -> RunEnvironment {
    // What cargo and nextest tell this test program is not meant for the projects it tests.
    let ours = |name: &str| {
        (name.starts_with("CARGO_") && name != "CARGO_HOME") || name.starts_with("NEXTEST")
    };
    let env: BTreeMap<OsString, OsString> = std::env::vars_os()
        .filter(|(name, _)| !ours(&name.to_string_lossy()))
        .collect();
    RunEnvironment {
        launcher: Launcher::this_program(),
        env,
        limit,
        guard: None,
        sandbox: TestSandbox::default(),
        execution: Execution::default(),
    }
}

/// A safety net only: nothing is expected to take this long.
pub const PLENTY: Duration = Duration::from_secs(300);

pub fn run_within(root: &Path, test_cmd: Option<&str>, limit: Duration) -> TestRun {
    let suite = detect(root, None, test_cmd).expect("a suite");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(suite.run(&run_environment(limit), &CancellationToken::new()))
}

pub fn run(root: &Path) -> TestRun {
    run_within(root, None, PLENTY)
}

/// What a distribution's packages bring of Maven's plug-ins and of JUnit: both are had without a network.
pub const MAVEN_PARTS: &str = "/usr/share/maven-repo/org/apache/maven/surefire/surefire-junit4";

/// JUnit 4 through Surefire, from the distribution's own repository.
pub fn maven_project(root: &Path) {
    file(
        root,
        "pom.xml",
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>demo</groupId>\n  \
         <artifactId>demo</artifactId>\n  <version>1</version>\n  <properties>\n    <maven.compiler.source>17</maven.compiler.source>\n    \
         <maven.compiler.target>17</maven.compiler.target>\n    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>\n    \
         <argLine>-XX:TieredStopAtLevel=1 -XX:+UseSerialGC</argLine>\n  </properties>\n  <dependencies>\n    <dependency>\n      <groupId>junit</groupId>\n      <artifactId>junit</artifactId>\n      \
         <version>4.x</version>\n      <scope>test</scope>\n    </dependency>\n  </dependencies>\n</project>\n",
    );
    file(
        root,
        ".mvn/maven.config",
        "-o\n-Dmaven.repo.local=/usr/share/maven-repo\n",
    );
    // Programs that live for a second need no good compiler.
    file(
        root,
        ".mvn/jvm.config",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n",
    );
}

pub const GTEST: &str = "/usr/include/gtest";

/// A library of headers and a program of GoogleTest whose every test CTest knows by name.
pub fn cmake_project(root: &Path) {
    file(
        root,
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.14)\nproject(demo CXX)\nenable_testing()\nfind_package(GTest REQUIRED)\n\
         add_executable(calc_test tests/calc_test.cpp)\ntarget_include_directories(calc_test PRIVATE include)\n\
         target_link_libraries(calc_test GTest::gtest_main)\ninclude(GoogleTest)\ngtest_discover_tests(calc_test)\n",
    );
}

pub fn file(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
    fs::write(path, text).expect("a file");
}

pub fn rust_manifest(root: &Path) {
    file(
        root,
        "Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
}
