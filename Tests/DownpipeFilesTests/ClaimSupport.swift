import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The helpers of the tests of claims.
protocol ClaimTests {}

extension ClaimTests {
  static var claimName: String { ".downpipe/partials/id.1.part.owner" }

  /// The real file system, and one without symbolic links.
  static var systems: [FileSystem] { [.system, Calls.failing([.makeLink], with: EPERM)] }

  func isInUse(_ words: String...) -> (any Error) -> Bool {
    { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .inUse && words.allSatisfy(error.message.contains)
    }
  }

  /// Creates a claim, as a symbolic link or as a file.
  func leave(_ text: String, in folder: TemporaryFolder, asFile: Bool = false) throws {
    try folder.makeFolder(".downpipe/partials")
    if asFile {
      _ = try folder.write(Array(text.utf8) + [10], to: Self.claimName)
    } else {
      try FileManager.default.createSymbolicLink(atPath: folder.path(Self.claimName), withDestinationPath: text)
    }
  }

  /// Sets the last renewal of all claims to a number of seconds ago.
  /// - Parameter seconds: One more than the lease: the clock of the file system is some milliseconds behind.
  func age(_ folder: TemporaryFolder, by seconds: Int64 = PartialClaim.lease + 1) throws {
    for name in try claims(folder) {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      now.tv_sec -= Int(seconds)
      #expect(
        utimensat(AT_FDCWD, folder.path(".downpipe/partials/" + name), [now, now], AT_SYMLINK_NOFOLLOW) == 0)
    }
  }

  func claims(_ folder: TemporaryFolder) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path(".downpipe/partials")).filter {
      $0.contains(PartialClaim.suffix)
    }
  }

  func text(_ folder: TemporaryFolder) throws -> String? {
    try ClaimEntry(path: folder.path(Self.claimName), system: .system).text()
  }

  /// An owner of this machine that is provably gone.
  func goneOwner() -> ProcessOwner {
    var owner = ProcessOwner.new()
    owner.end()
    owner.start -= 1
    return owner
  }

  /// Changes that make an owner unprovable: another machine with the same name, another container, or an earlier boot.
  static var unprovable: [@Sendable (inout ProcessOwner) -> Void] {
    [
      { $0.boot = "another" }, { $0.space = "another" }, { $0.boot = "" },
      { owner in
        owner.host = "elsewhere"
        owner.boot = "another"
      },
    ]
  }
}
