extension Row {
  private static let mebibyte: Int64 = 1 << 20

  /// All rows.
  ///
  /// - Parameter isQuick: Small sizes, which say nothing about speed.
  static func all(isQuick: Bool) -> [Row] {
    let large = isQuick ? 4 * mebibyte : 1_024 * mebibyte
    return singleFiles(large) + manyFiles(isQuick) + segments(isQuick ? 8 * mebibyte : 256 * mebibyte) + [
      Row(
        name: "slow", title: "\(isQuick ? "50" : "10,000") slow downloads at once",
        work: .slow(count: isQuick ? 50 : 10_000, size: isQuick ? 8 << 10 : 40 << 10), route: .direct(.trickle),
        peers: ["aria2c"], musts: [.memoryEach(32 << 10)]),
      Row(
        name: "start", title: "Start to the first byte asked for", work: .firstByte,
        peers: ["curl", "aria2c", "wget2", "axel"], musts: [.wall(.value(0.06))]),
      Row(name: "queue", title: "A long queue", work: .queue(downloads: isQuick ? 1_000 : 1_000_000)),
    ]
  }

  private static func singleFiles(_ size: Int64) -> [Row] {
    let all = ["curl", "aria2c", "wget2", "axel"]
    let amount = Shown.bytes(size)
    return [
      Row(
        name: "http", title: "\(amount), HTTP, in memory", work: .file(size: size), peers: all,
        musts: [.wall(.best(0.95)), .cpu(.best(1)), .memory(64 << 20)]),
      Row(name: "disk", title: "\(amount), HTTP, on disk", work: .file(size: size), isOnDisk: true, peers: all),
      Row(
        name: "https", title: "\(amount), HTTPS", work: .file(size: size), route: .direct(.tls), peers: all,
        musts: [.wall(.best(1))]),
      Row(
        name: "sha256", title: "\(amount), SHA-256 checked", work: .verified(size: size), peers: ["curl", "aria2c"],
        musts: [.wall(.program("aria2c", 0.6))]),
      Row(
        name: "gunzip", title: "\(amount) out of a .gz, decompressed", work: .gunzipped(size: size), peers: ["curl"],
        musts: [.wall(.program("curl", 0.6))]),
    ] + unpacking(size)
  }

  /// Without the trait for archives, there is nothing to measure.
  private static func unpacking(_ size: Int64) -> [Row] {
    #if Archive
      [
        Row(
          name: "untar", title: "\(Shown.bytes(size)) out of a .tar.zst at 128 MiB/s, unpacked",
          work: .unpacked(size: size), route: .direct(.rate128), peers: ["curl", CurlThenTarPeer.title],
          musts: [.wall(.program("curl", 1.05)), .wall(.program(CurlThenTarPeer.title, 0.7))])
      ]
    #else
      []
    #endif
  }

  private static func manyFiles(_ isQuick: Bool) -> [Row] {
    let many = ["curl", "aria2c", "wget2"]
    let musts: [Must] = [.wall(.program("curl", 1.8)), .wall(.less(thanProgram: "aria2c"))]
    return [
      Row(
        name: "many", title: "\(isQuick ? "40" : "2,000") × 64 KiB, 16 at once",
        work: .list(count: isQuick ? 40 : 2_000, size: 64 << 10, jobs: 16), peers: many, musts: musts),
      Row(
        name: "tiny", title: "\(isQuick ? "100" : "10,000") × 16 KiB, 16 at once",
        work: .list(count: isQuick ? 100 : 10_000, size: 16 << 10, jobs: 16), peers: many, musts: musts),
    ]
  }

  /// Over 8 connections of 8 MiB/s each.
  private static func segments(_ size: Int64) -> [Row] {
    let rate = 8 * mebibyte
    let ideal = Double(size) / Double(8 * rate)
    let amount = Shown.bytes(size)
    let work = Work.segments(8, size: size)
    // What all eight connections bring from the fastest mirror, and after its death from the next one.
    let mirrored = ideal / 2 + ideal
    return [
      Row(
        name: "segments", title: "\(amount), 8 MiB/s a connection, 8 connections", work: work,
        route: .direct(.rate8), peers: ["curl", "aria2c", "wget2", "axel"], measuredOnce: ["curl"], ideal: ideal,
        musts: [
          .wall(.ideal(1.05)), .wall(.program("aria2c", 1)), .wall(.program("axel", 1)), .fetched(1.02 * Double(size)),
        ]),
      Row(
        name: "stalled", title: "The same, one connection at 1 %", work: work,
        route: .oneSlow(.rate8, bytesPerSecond: Int(rate) / 100), peers: ["aria2c", "wget2", "axel"],
        ideal: ideal * 8 / 7, musts: [.wall(.ideal(1.1)), .fetched(1.02 * Double(size))]),
      Row(
        name: "mirrors", title: "The same, mirrors of 8, 4 and 1 MiB/s, the fastest dies half way", work: work,
        route: .mirrors(lifetime: size / 2), peers: ["aria2c", "axel"], ideal: mirrored,
        musts: [.wall(.ideal(1.15))]),
      Row(
        name: "delay", title: "The same, a round trip of 50 ms", work: work,
        route: .delayed(.rate8, roundTrip: .milliseconds(50)), peers: ["aria2c", "wget2", "axel"], ideal: ideal,
        musts: [.wall(.program("aria2c", 1)), .fetched(1.02 * Double(size))]),
    ]
  }
}
