#if LIBCURL
  import CCurl
  import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// The cookies of one session, which all threads share: libcurl's engine (RFC 6265) with the public suffix list.
  final class CookieJar: Sendable {
    /// The address of the C value, which has a lock of its own for each kind of data.
    private let address: UInt
    private let path: String?

    /// - Throws: ``DownloadError`` with `.permission` when the file is there and cannot be read, and `.invalidPipeline` when it
    ///   is not a file with cookies.
    init(_ setting: HTTPSource.Cookies) throws(DownloadError) {
      guard CurlLibrary.hasPublicSuffixes else {
        throw DownloadError(
          .invalidPipeline,
          "this libcurl was built without the public suffix list, so that any site could set cookies for "
            + "others: it keeps no cookies")
      }
      guard CurlLibrary.version > 0, let jar = downpipe_jar_create() else { throw CurlLibrary.outOfMemory }
      address = UInt(bitPattern: jar)
      if case .file(let path) = setting { self.path = path } else { path = nil }
      guard let path, FileManager.default.fileExists(atPath: path) else { return }
      guard let bytes = try? Data(contentsOf: URL(filePath: path), options: .mappedIfSafe) else {
        throw DownloadError(.permission, "the cookies in \(path) cannot be read: check the permissions of the file")
      }
      if let number = CookieFile.lineWithoutCookie(bytes) {
        throw DownloadError(
          .invalidPipeline,
          "\(path) is not a file with cookies in Netscape's format, by line \(number): it would be overwritten. Choose another "
            + "file, or remove the line")
      }
      withHandle { handle in
        handle.set(CURLOPT_COOKIEFILE, path)
        handle.set(CURLOPT_COOKIELIST, "RELOAD")
      }
    }

    deinit {
      if let jar = pointer { downpipe_jar_destroy(jar) }
    }

    private var pointer: UnsafeMutablePointer<downpipe_jar>? { UnsafeMutablePointer(bitPattern: address) }

    /// Lets a transfer send the cookies of the jar, and keep those that it gets.
    func join(_ handle: EasyHandle) {
      handle.set(CURLOPT_COOKIEFILE, "")
      downpipe_set_jar(handle.pointer, pointer)
    }

    /// Writes the file, or that which a link leads to. libcurl replaces it in one step.
    func save() {
      guard let path = path.map(CookieFile.target) else { return }
      // Another program may have put something else in its place meanwhile.
      if let bytes = try? Data(contentsOf: URL(filePath: path), options: .mappedIfSafe),
        CookieFile.lineWithoutCookie(bytes) != nil
      {
        return
      }
      if !FileManager.default.fileExists(atPath: path) {
        // Cookies are secrets: the file is its user's alone. libcurl keeps the permissions.
        _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
      }
      withHandle { handle in
        // Another process may have written meanwhile. What this session has set precedes.
        handle.set(CURLOPT_COOKIEFILE, path)
        handle.set(CURLOPT_COOKIELIST, "RELOAD")
        handle.set(CURLOPT_COOKIEJAR, path)
        handle.set(CURLOPT_COOKIELIST, "FLUSH")
      }
    }

    private func withHandle(_ body: (EasyHandle) -> Void) {
      guard let handle = EasyHandle() else { return }
      join(handle)
      body(handle)
      handle.destroy()
    }
  }
#endif
