// swift-tools-version: 6.2
import PackageDescription

// A package of its own, because it needs libFuzzer: build it with `.ci/long fuzz`.
let package = Package(
  name: "fuzz-http",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "downpipe", path: "../..", traits: ["Curl"])],
  targets: [
    .systemLibrary(name: "CFuzzer"),
    .executableTarget(
      name: "FuzzHTTP",
      dependencies: [
        "CFuzzer", .product(name: "DownpipeHTTP", package: "downpipe"),
        .product(name: "DownpipeCore", package: "downpipe"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ]),
  ]
)
