// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

func downpipe(_ names: String...) -> [Target.Dependency] {
  names.map { .product(name: "Downpipe\($0)", package: "downpipe") }
}

// A package of its own, because it needs libFuzzer: build it with `.ci/long fuzz`.
let package = Package(
  name: "fuzz",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "downpipe", path: "../..", traits: ["Curl", "Archive", "Signature"])],
  targets: [
    .systemLibrary(name: "CFuzzer"),
    .target(name: "FuzzSupport", swiftSettings: settings),
    // The answers of a server.
    .executableTarget(
      name: "FuzzHTTP", dependencies: ["CFuzzer", "FuzzSupport"] + downpipe("HTTP", "Core"), swiftSettings: settings),
    // Files and fields that a server chooses.
    .executableTarget(
      name: "FuzzFormats",
      dependencies: ["CFuzzer", "FuzzSupport"]
        + downpipe("Archive", "Checksum", "Core", "Files", "Metalink", "Signature"),
      swiftSettings: settings),
  ]
)
