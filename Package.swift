// swift-tools-version: 6.2
import PackageDescription

// The platforms that come with a libcurl, or where every user of it can install one.
let curlPlatforms: [Platform] = [.linux, .macOS]

// Every target is compiled in the Swift 6 language mode with these on top.
let strict: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // Where DownpipeHTTP has an implementation; elsewhere the umbrella brings DownpipeURLSession in its place.
    .define("LIBCURL", .when(platforms: curlPlatforms, traits: ["Curl"])),
    // Where DownpipeSignature has libsodium.
    .define("LIBSODIUM", .when(platforms: curlPlatforms, traits: ["Signature"])),
  ]
  // Defects of the engine that its tests switch on, to prove that they find them. No product has them: .ci/build sets this.
  + (Context.environment["DOWNPIPE_SABOTAGE"] == nil ? [] : [.define("SABOTAGE")])

/// A plug-in: one target, one product, one folder below `Plugins`.
func plugin(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(
    name: "Downpipe\(name)",
    dependencies: ["DownpipeCore"] + dependencies,
    path: "Plugins/\(name)",
    swiftSettings: strict
  )
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(
    name: "\(name)Tests",
    dependencies: dependencies + ["ChildPipe", "HangLimit"],
    path: "Tests/\(name)Tests",
    exclude: exclude,
    swiftSettings: strict
  )
}

func example(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .executableTarget(
    name: name,
    dependencies: dependencies,
    path: "Examples/\(name)",
    exclude: exclude,
    swiftSettings: strict
  )
}

let sqlite: TargetDependencyCondition? = .when(traits: ["SQLite"])
let curl: TargetDependencyCondition? = .when(platforms: curlPlatforms, traits: ["Curl"])
let archive: TargetDependencyCondition? = .when(traits: ["Archive"])
let asyncHTTPClient: TargetDependencyCondition? = .when(traits: ["AsyncHTTPClient"])
// Apps for other platforms cannot start programs.
let command: TargetDependencyCondition? = .when(platforms: [.linux, .macOS], traits: ["Command"])
let postgres: TargetDependencyCondition? = .when(platforms: [.linux, .macOS], traits: ["Postgres"])
let rpc: TargetDependencyCondition? = .when(platforms: [.linux, .macOS], traits: ["RPC"])
// What needs a server.
let server: TargetDependencyCondition? = .when(platforms: [.linux, .macOS], traits: ["RPC", "Postgres"])
let serverTLS: TargetDependencyCondition? = .when(platforms: [.linux, .macOS], traits: ["RPCTLS"])
let signature: TargetDependencyCondition? = .when(platforms: curlPlatforms, traits: ["Signature"])

let package = Package(
  name: "downpipe",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Downpipe", targets: ["Downpipe"]),
    .library(name: "DownpipeCore", targets: ["DownpipeCore"]),
    .library(name: "DownpipeTesting", targets: ["DownpipeTesting"]),
    .library(name: "DownpipeHTTP", targets: ["DownpipeHTTP"]),
    .library(name: "DownpipeFileTransfer", targets: ["DownpipeFileTransfer"]),
    .library(name: "DownpipeS3", targets: ["DownpipeS3"]),
    .library(name: "DownpipeAsyncHTTPClient", targets: ["DownpipeAsyncHTTPClient"]),
    .library(name: "DownpipeURLSession", targets: ["DownpipeURLSession"]),
    .library(name: "DownpipeBackgroundURLSession", targets: ["DownpipeBackgroundURLSession"]),
    .library(name: "DownpipeAppleResumeData", targets: ["DownpipeAppleResumeData"]),
    .library(name: "DownpipeFiles", targets: ["DownpipeFiles"]),
    .library(name: "DownpipeMemory", targets: ["DownpipeMemory"]),
    .library(name: "DownpipeLinks", targets: ["DownpipeLinks"]),
    .library(name: "DownpipeScheduling", targets: ["DownpipeScheduling"]),
    .library(name: "DownpipeGates", targets: ["DownpipeGates"]),
    .library(name: "DownpipeSQLite", targets: ["DownpipeSQLite"]),
    .library(name: "DownpipePostgres", targets: ["DownpipePostgres"]),
    .library(name: "DownpipeRPC", targets: ["DownpipeRPC"]),
    .library(name: "DownpipeGzip", targets: ["DownpipeGzip"]),
    .library(name: "DownpipeArchive", targets: ["DownpipeArchive"]),
    .library(name: "DownpipeChecksum", targets: ["DownpipeChecksum"]),
    .library(name: "DownpipeCommand", targets: ["DownpipeCommand"]),
    .library(name: "DownpipeSignature", targets: ["DownpipeSignature"]),
    .library(name: "DownpipeMetalink", targets: ["DownpipeMetalink"]),
    .library(name: "DownpipeLogging", targets: ["DownpipeLogging"]),
    .library(name: "DownpipeMetrics", targets: ["DownpipeMetrics"]),
    .library(name: "DownpipeTracing", targets: ["DownpipeTracing"]),
    .library(name: "DownpipeService", targets: ["DownpipeService"]),
    .executable(name: "downpipe", targets: ["DownpipeTool"]),
  ],
  traits: [
    .trait(name: "SQLite", description: "DownpipeSQLite: a ledger in a SQLite file (needs libsqlite3)."),
    .trait(
      name: "Curl",
      description:
        "DownpipeHTTP and DownpipeFileTransfer: HTTP, FTP and SFTP by libcurl (on Linux with libbrotli and libzstd). Without it HTTPSource is URLSession."
    ),
    .trait(
      name: "AsyncHTTPClient",
      description: "DownpipeAsyncHTTPClient: HTTP by async-http-client, for servers that use SwiftNIO already."),
    .trait(
      name: "Archive",
      description: "DownpipeArchive: unpacks tar, zip, 7z, cpio, xz, zstd, bzip2 and lz4 (needs libarchive)."),
    .trait(name: "Command", description: "DownpipeCommand: a step that runs a program, by swift-subprocess."),
    .trait(
      name: "Signature",
      description: "DownpipeSignature: signatures of minisign and Ed25519 (needs libsodium); OpenPGP needs no trait."),
    .trait(
      name: "Postgres", description: "DownpipePostgres: a ledger in PostgreSQL that machines share (needs libpq)."),
    .trait(
      name: "RPC", description: "DownpipeRPC: clients of aria2 drive a downloader; events and metrics over HTTP."),
    // Not a part of it: its package takes minutes of a cold build, and a proxy before the server can speak TLS as well.
    .trait(name: "RPCTLS", description: "TLS for DownpipeRPC, by swift-nio-ssl.", enabledTraits: ["RPC"]),
    .default(enabledTraits: ["SQLite", "Curl"]),
  ],
  dependencies: [
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
  ],
  targets: [
    // Core
    .target(name: "DownpipeCore", swiftSettings: strict),
    // What plug-ins share of the operating system: descriptors, the table of errors, blocking threads, process owners.
    // No product.
    .target(name: "DownpipePOSIX", dependencies: ["DownpipeCore", "CSystemCalls"], swiftSettings: strict),
    // What the observers share: intervals from events, texts without secrets. No product.
    .target(name: "DownpipeTimeline", dependencies: ["DownpipeCore"], swiftSettings: strict),
    // What the readers of documents from servers share. No product.
    .target(name: "DownpipeXML", swiftSettings: strict),
    // Digests and HMAC: by libcrypto, and by CryptoKit on Apple's platforms. No product.
    .target(
      name: "DownpipeDigest", dependencies: [.target(name: "CCrypto", condition: .when(platforms: [.linux]))],
      swiftSettings: strict),
    // What ledgers in SQL databases share: a record as columns, and the lifecycle as SQL. No product.
    .target(name: "DownpipeColumns", dependencies: ["DownpipeCore"], swiftSettings: strict),
    // The lines of --json, also for clients of a server. No product.
    .target(name: "DownpipeJSON", dependencies: ["DownpipeCore"], swiftSettings: strict),
    // A server of HTTP and WebSocket with bounds, for the plug-in RPC and for the tool. No product.
    .target(
      name: "DownpipeServer",
      dependencies: [
        .product(name: "NIOCore", package: "swift-nio", condition: server),
        .product(name: "NIOPosix", package: "swift-nio", condition: server),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: server),
        .product(name: "NIOWebSocket", package: "swift-nio", condition: server),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: serverTLS),
      ],
      swiftSettings: strict),
    // The page that a server shows, in the program. No product.
    .target(name: "DownpipePage", dependencies: ["CPageFiles"], swiftSettings: strict),
    .target(name: "CPageFiles", exclude: ["index.html", "page.css", "page.js", "link.js", "lists.js", "add.js"]),
    // Calls of the C library that Swift's module of it lacks, or that differ between the systems.
    .target(name: "CSystemCalls"),
    .systemLibrary(
      name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(
      name: "CBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"]), .brew(["brotli"])]),
    .systemLibrary(
      name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
      name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"]), .brew(["libarchive"])]),
    .systemLibrary(
      name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
    .systemLibrary(
      name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(
      name: "CSQLiteShim", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),

    // Plug-ins
    plugin(
      "HTTP",
      [
        "DownpipePOSIX", "CZlib", .target(name: "CCurl", condition: curl),
        // An app for macOS could not rely on these.
        .target(name: "CBrotli", condition: .when(platforms: [.linux], traits: ["Curl"])),
        .target(name: "CZstd", condition: .when(platforms: [.linux], traits: ["Curl"])),
      ]),
    plugin(
      "FileTransfer", [.target(name: "DownpipeHTTP", condition: curl), .target(name: "CCurl", condition: curl)]),
    plugin(
      "S3",
      [
        "DownpipePOSIX", "DownpipeDigest", "DownpipeXML", .target(name: "DownpipeHTTP", condition: curl),
      ]),
    plugin(
      "AsyncHTTPClient",
      [
        .product(name: "AsyncHTTPClient", package: "async-http-client", condition: asyncHTTPClient),
        .product(name: "NIOCore", package: "swift-nio", condition: asyncHTTPClient),
        .product(name: "NIOPosix", package: "swift-nio", condition: asyncHTTPClient),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: asyncHTTPClient),
        .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: asyncHTTPClient),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: asyncHTTPClient),
      ]),
    plugin("URLSession"),
    plugin("BackgroundURLSession", ["DownpipeURLSession", "DownpipePOSIX"]),
    plugin("AppleResumeData"),
    plugin("Files", ["DownpipePOSIX", "CZlib"]),
    plugin("Memory", ["DownpipePOSIX"]),
    plugin("Links"),
    plugin("Scheduling"),
    plugin("Gates", ["DownpipePOSIX"]),
    plugin(
      "SQLite",
      [
        "DownpipeColumns", "DownpipePOSIX",
        .product(name: "GRDB", package: "GRDB.swift", condition: sqlite),
        .product(name: "GRDBSQLite", package: "GRDB.swift", condition: sqlite),
      ]),
    plugin("Postgres", ["DownpipeColumns", "DownpipePOSIX", .target(name: "CPostgres", condition: postgres)]),
    plugin(
      "RPC",
      [
        "DownpipeServer", "DownpipeJSON", "DownpipePage", "DownpipeMetalink", "DownpipeChecksum", "DownpipeScheduling",
        "DownpipePOSIX", "DownpipeDigest",
      ]),
    plugin("Gzip", ["DownpipePOSIX", "CZlib"]),
    plugin("Archive", ["DownpipePOSIX", "DownpipeGzip", .target(name: "CArchive", condition: archive)]),
    plugin("Checksum", ["DownpipePOSIX", "DownpipeDigest", "CZlib"]),
    plugin(
      "Command",
      [
        "DownpipePOSIX", .product(name: "Subprocess", package: "swift-subprocess", condition: command),
        // The paths of Subprocess, which are in a module of the system on a Mac.
        .product(
          name: "SystemPackage", package: "swift-system", condition: .when(platforms: [.linux], traits: ["Command"])),
      ]),
    plugin("Signature", ["DownpipePOSIX", .target(name: "CSodium", condition: signature)]),
    plugin("Metalink", ["DownpipeXML"]),
    plugin("Logging", ["DownpipeTimeline", .product(name: "Logging", package: "swift-log")]),
    plugin("Metrics", ["DownpipeTimeline", .product(name: "CoreMetrics", package: "swift-metrics")]),
    plugin("Tracing", ["DownpipeTimeline", .product(name: "Tracing", package: "swift-distributed-tracing")]),
    plugin("Service", [.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")]),

    // The batteries, and the test kit
    .target(
      name: "Downpipe",
      dependencies: [
        "DownpipeCore", "DownpipeFiles", "DownpipeMemory", "DownpipeLinks", "DownpipeScheduling", "DownpipeGates",
        "DownpipeChecksum", "DownpipeGzip",
        // One of the two is exported. The other costs nothing: it needs no third-party code.
        .target(name: "DownpipeHTTP", condition: curl), "DownpipeURLSession",
        .target(name: "DownpipeFileTransfer", condition: curl),
        .target(name: "DownpipeSQLite", condition: sqlite),
      ],
      swiftSettings: strict),
    .target(name: "DownpipeTesting", dependencies: ["DownpipeCore", "CSystemCalls"], swiftSettings: strict),

    // The command-line tool. Its target is not called as its product: `Downpipe` and `downpipe` are one file on a Mac.
    .executableTarget(
      name: "DownpipeTool",
      dependencies: [
        "Downpipe", "DownpipeCore", "DownpipeColumns", "DownpipeDigest", "DownpipeJSON", "DownpipeServer",
        "DownpipeRPC",
        "DownpipeURLSession", "DownpipeAppleResumeData", "DownpipeArchive", "DownpipeCommand", "DownpipeSignature",
        "DownpipeMetalink", "DownpipeS3",
        .target(name: "DownpipeAsyncHTTPClient", condition: asyncHTTPClient),
        .target(name: "CSQLiteShim", condition: sqlite), .target(name: "DownpipePostgres", condition: postgres),
        .target(name: "DownpipeHTTP", condition: curl),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),

    // Examples
    example("Quickstart", ["Downpipe"]),
    // Not the umbrella: the first build of a newcomer does without SQLite.
    example(
      "Demo",
      [
        "DownpipeCore", .target(name: "DownpipeHTTP", condition: curl), "DownpipeURLSession", "DownpipeFiles",
        "DownpipeScheduling", "DownpipeChecksum", "DownpipeGzip", "DownpipeTesting",
      ]),
    example("CustomStages", ["Downpipe"]),
    example("Mirror", ["Downpipe"]),
    example("Dataset", ["Downpipe"]),
    example("Podcasts", ["Downpipe"]),
    // Not called `Service`: that is a protocol of swift-service-lifecycle.
    .executableTarget(
      name: "ServiceExample",
      dependencies: [
        "Downpipe", "DownpipeService", .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Examples/Service", swiftSettings: strict),
    example(
      "ResumableLibrary",
      [
        "Downpipe", "DownpipeURLSession", "DownpipeBackgroundURLSession", "DownpipeAppleResumeData", "DownpipeTesting",
      ],
      exclude: ["README.md"]),
    example(
      "ExpiringLinks", ["Downpipe", "DownpipeDigest", "DownpipeTesting"],
      exclude: ["README.md"]),
    .executableTarget(
      name: "Benchmark",
      dependencies: [
        "Downpipe",
        "DownpipeArchive", .target(name: "DownpipePostgres", condition: postgres),
        // Not linked: they are built because it starts them.
        "DownpipeTool", "BenchmarkLauncher",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
      ],
      path: "Examples/Benchmark", exclude: ["README.md", "Launcher"], swiftSettings: strict),
    .executableTarget(name: "BenchmarkLauncher", path: "Examples/Benchmark/Launcher"),
    example("AssetManager", ["Downpipe", "DownpipeTesting"], exclude: ["README.md"]),
    example("MediaLibrary", ["Downpipe", "DownpipeTesting"], exclude: ["README.md"]),
    example(
      "LargeFiles",
      ["Downpipe", "DownpipeURLSession", "DownpipeBackgroundURLSession", "DownpipeTesting"], exclude: ["README.md"]),
    // The web server of trials of a fleet, also that of the tests.
    .executableTarget(
      name: "FaultyServer",
      dependencies: [
        "DownpipeCore", "DownpipeTesting", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Examples/Fleet/FaultyServer", swiftSettings: strict),
    // Not called `Metrics`: that is a module of swift-metrics.
    .executableTarget(
      name: "MetricsExample",
      dependencies: [
        "Downpipe", "DownpipeMetrics",
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      path: "Examples/Metrics", exclude: ["README.md"], swiftSettings: strict),

    // Tests
    .target(name: "ChildPipe", path: "Tests/ChildPipe", swiftSettings: strict),
    .target(name: "HangLimit", path: "Tests/HangLimit", swiftSettings: strict),
    .target(
      name: "PostgresCluster", dependencies: ["ChildPipe"], path: "Tests/PostgresCluster", swiftSettings: strict),
    .target(
      name: "ObjectStorageServer", dependencies: ["ChildPipe"], path: "Tests/ObjectStorageServer",
      exclude: ["server.py"], swiftSettings: strict),
    tests("DownpipeCore", ["DownpipeCore", "DownpipeTesting"]),
    tests("DownpipePOSIX", ["DownpipePOSIX", "DownpipeCore", "DownpipeTesting"]),
    tests(
      "DownpipeDigest", ["DownpipeDigest", .target(name: "CCrypto", condition: .when(platforms: [.linux]))]),
    tests("DownpipeTesting", ["DownpipeTesting", "DownpipeCore"]),
    tests(
      "DownpipeHTTP",
      [
        "DownpipeHTTP", "DownpipeAsyncHTTPClient", "DownpipeCore", "DownpipeTesting",
        .target(name: "CCurl", condition: curl),
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        // A server that speaks TLS.
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: asyncHTTPClient),
      ]),
    tests(
      "DownpipeFileTransfer",
      [
        "DownpipeFileTransfer", "DownpipeHTTP", "DownpipeCore", "DownpipeFiles", "DownpipeScheduling",
        "DownpipeChecksum", "DownpipeTesting",
      ]),
    tests(
      "DownpipeS3",
      [
        "DownpipeS3", "DownpipeHTTP", "DownpipeCore", "DownpipePOSIX", "DownpipeFiles", "DownpipeScheduling",
        "DownpipeTesting",
        "ObjectStorageServer",
      ]),
    tests("DownpipeURLSession", ["DownpipeURLSession", "DownpipeCore", "DownpipeTesting"]),
    tests(
      "DownpipeBackgroundURLSession",
      ["DownpipeBackgroundURLSession", "DownpipeURLSession", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeAppleResumeData", ["DownpipeAppleResumeData", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeFiles", ["DownpipeFiles", "DownpipeCore", "DownpipePOSIX", "DownpipeTesting"]),
    tests("DownpipeMemory", ["DownpipeMemory", "DownpipeFiles", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeLinks", ["DownpipeLinks", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeScheduling", ["DownpipeScheduling", "DownpipeMemory", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeGates", ["DownpipeGates", "DownpipePOSIX", "DownpipeCore", "DownpipeTesting"]),
    tests(
      "DownpipeSQLite",
      [
        "DownpipeSQLite", "DownpipeColumns", "DownpipeCore", "DownpipePOSIX", "DownpipeScheduling", "DownpipeTesting",
        .product(name: "GRDB", package: "GRDB.swift", condition: sqlite),
        .product(name: "GRDBSQLite", package: "GRDB.swift", condition: sqlite),
      ],
      exclude: ["ledger-0.1.0.sql"]),
    tests(
      "DownpipePostgres",
      [
        "DownpipePostgres", "DownpipeColumns", "DownpipeCore", "DownpipeScheduling", "DownpipeTesting",
        "PostgresCluster",
      ]),
    tests("DownpipeServer", ["DownpipeServer", "DownpipeTesting"]),
    tests(
      "DownpipeRPC",
      [
        "DownpipeRPC", "DownpipeServer", "DownpipeJSON", "DownpipeCore", "DownpipeScheduling", "DownpipeChecksum",
        "DownpipeTesting",
      ]),
    tests("DownpipeGzip", ["DownpipeGzip", "DownpipeCore", "DownpipePOSIX", "DownpipeTesting"]),
    tests(
      "DownpipeArchive",
      [
        "DownpipeArchive", "DownpipeCore", "DownpipeDigest", "DownpipeGzip", "DownpipePOSIX", "DownpipeTesting",
      ]),
    tests(
      "DownpipeChecksum", ["DownpipeChecksum", "DownpipeFiles", "DownpipePOSIX", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeCommand", ["DownpipeCommand", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeSignature", ["DownpipeSignature", "DownpipeCore", "DownpipeTesting"]),
    tests(
      "DownpipeMetalink", ["DownpipeMetalink", "DownpipeXML", "DownpipeChecksum", "DownpipeCore", "DownpipeTesting"]),
    tests("DownpipeTimeline", ["DownpipeTimeline", "DownpipeCore", "DownpipeTesting"]),
    tests(
      "DownpipeLogging",
      [
        "DownpipeLogging", "DownpipeCore", "DownpipeTesting",
        .product(name: "Logging", package: "swift-log"), .product(name: "InMemoryLogging", package: "swift-log"),
      ]),
    tests(
      "DownpipeMetrics",
      [
        "DownpipeMetrics", "DownpipeCore", "DownpipeTesting",
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
      ]),
    tests(
      "DownpipeTracing",
      [
        "DownpipeTracing", "DownpipeLogging", "DownpipeMetrics", "DownpipeCore", "DownpipeTesting",
        .product(name: "Logging", package: "swift-log"), .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
      ]),
    tests(
      "DownpipeService",
      [
        "DownpipeService", "DownpipeCore", "DownpipeTesting",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
    tests(
      "EndToEnd",
      [
        "Downpipe", "DownpipeCore", "DownpipeURLSession", "DownpipeTesting", "PostgresCluster", "FaultyServer",
        "ServiceExample", "DownpipeS3", "DownpipeHTTP", "ObjectStorageServer",
        .target(name: "DownpipeSQLite", condition: sqlite), .target(name: "DownpipePostgres", condition: postgres),
      ],
      exclude: ["clients"]),
    tests(
      "DownpipeTool",
      [
        "DownpipeTool", "Downpipe", "DownpipeCore", "DownpipeColumns", "DownpipeFiles", "DownpipeJSON",
        "DownpipeServer",
        "DownpipeTesting",
        .target(name: "DownpipePostgres", condition: postgres),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    tests("CustomStages", ["CustomStages", "Downpipe", "DownpipeTesting"]),
    // The examples of the documentation, against the modules that are built beside it.
    tests(
      "Documentation",
      [
        "Downpipe", "DownpipeTesting", "DownpipeService", "DownpipeAppleResumeData", "DownpipeURLSession",
        "DownpipeBackgroundURLSession", "DownpipeLogging", "DownpipeMetrics", "DownpipeTracing", "DownpipeCommand",
        "DownpipeArchive", "DownpipeSignature", "DownpipeMetalink", "DownpipePostgres", "DownpipeS3", "DownpipeRPC",
        .target(name: "DownpipeAsyncHTTPClient", condition: asyncHTTPClient),
      ]),
    // A disk that fails under storage and ledger.
    .target(
      name: "CFaultyVFS", path: "Tests/CFaultyVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
    tests(
      "Crash",
      [
        "DownpipeCore", "DownpipeFiles", "DownpipeArchive", "DownpipeChecksum", "DownpipePOSIX", "DownpipeTesting",
        .target(name: "DownpipeSQLite", condition: sqlite), .target(name: "CFaultyVFS", condition: sqlite),
      ]),
    tests(
      "ResumableLibrary",
      [
        "ResumableLibrary", "Downpipe", "DownpipeURLSession", "DownpipeAppleResumeData", "DownpipeTesting",
      ]),
    tests(
      "Benchmark",
      [
        "Benchmark", "DownpipeTesting",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    tests("MetricsExample", ["MetricsExample", "Downpipe", "DownpipeTesting"]),
    tests("Podcasts", ["Podcasts", "Downpipe", "DownpipeTesting"]),
    tests("Mirror", ["Mirror", "Downpipe", "DownpipeDigest", "DownpipeTesting"]),
    tests("Dataset", ["Dataset", "Downpipe", "DownpipeDigest", "DownpipeTesting"]),
    tests("ExpiringLinks", ["ExpiringLinks", "Downpipe", "DownpipeTesting"]),
    tests("AssetManager", ["AssetManager", "Downpipe", "DownpipeGates", "DownpipeTesting"]),
    tests("MediaLibrary", ["MediaLibrary", "Downpipe", "DownpipeGates", "DownpipeTesting"]),
    tests(
      "LargeFiles",
      [
        "LargeFiles", "Downpipe", "DownpipeGates", "DownpipeURLSession", "DownpipeBackgroundURLSession",
        "DownpipeTesting",
      ]),
  ]
)

// All tests of a package are one program. To compile the tests of some modules only:
// `DOWNPIPE_TESTS=DownpipeCore,DownpipeFiles swift test`.
if let selected = Context.environment["DOWNPIPE_TESTS"] {
  let names = Set(selected.split(separator: ",").map { "\($0)Tests" })
  package.targets.removeAll { $0.type == .test && !names.contains($0.name) }
}
