// swift-tools-version: 6.2
import PackageDescription

// The sources as Apple's compiler sees them, on Linux: `.ci/apple` copies this package to .build/apple/package, the sources
// beside it, and builds it there. The modules of Apple's systems are stand-ins with the declarations that Downpipe uses.
// No dependencies, because they would take the stand-ins for Apple's modules.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

func standIn(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, path: "StandIns/\(name)", swiftSettings: [.swiftLanguageMode(.v6)])
}

func sources(_ name: String, _ path: String, _ dependencies: [Target.Dependency], define: String? = nil) -> Target {
  .target(
    name: name, dependencies: ["AppleFoundation", "AppleDarwin"] + dependencies, path: path,
    swiftSettings: strict + (define.map { [.define($0)] } ?? []))
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["AppleFoundation", "AppleDarwin"], path: "Tests/\(name)",
    // Swift Testing has an overlay for UIKit, on Apple's systems.
    swiftSettings: strict + [.unsafeFlags(["-Xfrontend", "-disable-cross-import-overlays"])])
}

let package = Package(
  name: "apple-platforms",
  targets: [
    standIn("GlibcCalls"), standIn("DarwinTypes"), standIn("AppleDarwin", ["DarwinTypes", "GlibcCalls"]),
    standIn("AppleFoundation", ["AppleDarwin"]), standIn("Network"), standIn("IOKit"), standIn("UIKit"),
    standIn("CryptoKit", ["CCrypto"]),

    .target(name: "CSystemCalls", path: "Sources/CSystemCalls"),
    .systemLibrary(name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib"),
    .systemLibrary(name: "CCrypto", path: "Sources/CCrypto", pkgConfig: "libcrypto"),
    .systemLibrary(name: "CCurl", path: "Sources/CCurl", pkgConfig: "libcurl"),
    sources("DownpipeCore", "Sources/DownpipeCore", []),
    sources("DownpipePOSIX", "Sources/DownpipePOSIX", ["DownpipeCore", "CSystemCalls"]),
    sources("DownpipeDigest", "Sources/DownpipeDigest", ["CryptoKit"]),
    sources("DownpipeFiles", "Plugins/Files", ["DownpipeCore", "DownpipePOSIX", "CZlib"]),
    sources("DownpipeMemory", "Plugins/Memory", ["DownpipeCore", "DownpipePOSIX"]),
    sources("DownpipeGates", "Plugins/Gates", ["DownpipeCore", "DownpipePOSIX", "Network", "IOKit"]),
    sources("DownpipeGatesOnPhone", "Plugins/GatesOnPhone", ["DownpipeCore", "DownpipePOSIX", "Network", "UIKit"]),
    sources("DownpipeURLSession", "Plugins/URLSession", ["DownpipeCore"]),
    sources(
      "DownpipeBackgroundURLSession", "Plugins/BackgroundURLSession",
      ["DownpipeCore", "DownpipePOSIX", "DownpipeURLSession"]),
    sources("DownpipeHTTP", "Plugins/HTTP", ["DownpipeCore", "DownpipePOSIX", "CCurl", "CZlib"], define: "LIBCURL"),
    sources("Fixtures", "Sources/Fixtures", ["DownpipeCore"]),
    sources("ChildProgram", "Sources/ChildProgram", ["DownpipeCore", "DownpipePOSIX"]),
    sources("ToolProcess", "Sources/ToolProcess", []),
    sources("BenchmarkProcess", "Sources/BenchmarkProcess", []),

    tests(
      "SystemTests",
      [
        "DownpipePOSIX", "DownpipeCore", "DownpipeFiles", "DownpipeMemory", "ToolProcess", "BenchmarkProcess",
        "ChildProgram", "Fixtures",
      ]),
    // Those of the repository itself: published vectors.
    tests("DigestTests", ["DownpipeDigest"]),
    tests("GatesTests", ["DownpipeGates", "DownpipeCore", "Network", "IOKit"]),
    tests("PhoneTests", ["DownpipeGatesOnPhone", "DownpipeCore", "Network", "UIKit"]),
    tests(
      "SessionTests",
      [
        "DownpipeBackgroundURLSession", "DownpipeURLSession", "DownpipeCore", "DownpipePOSIX", "DownpipeHTTP",
        "Fixtures",
      ]),
  ]
)
