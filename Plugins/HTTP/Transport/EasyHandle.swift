#if LIBCURL
  package import CCurl

  /// One transfer of libcurl, with its options given by type.
  ///
  /// It is used on the thread of its thread only.
  package struct EasyHandle {
    package let pointer: UnsafeMutableRawPointer

    /// - Returns: `nil` when libcurl has no memory.
    init?() {
      guard let pointer = curl_easy_init() else { return nil }
      self.pointer = pointer
    }

    init(_ pointer: UnsafeMutableRawPointer) { self.pointer = pointer }

    // Options that this libcurl does not have are left at their default: what depends on one asks for the code.

    @discardableResult package func set(_ option: CURLoption, _ value: Int) -> CURLcode {
      downpipe_set_long(pointer, option, value)
    }

    /// libcurl copies the text.
    @discardableResult package func set(_ option: CURLoption, _ value: String) -> CURLcode {
      downpipe_set_text(pointer, option, value)
    }

    @discardableResult func set(_ option: CURLoption, _ list: HeaderList) -> CURLcode {
      downpipe_set_list(pointer, option, list.first)
    }

    @discardableResult package func set(_ option: CURLoption, bytes: String) -> CURLcode {
      var bytes = bytes
      return bytes.withUTF8 { downpipe_set_blob(pointer, option, $0.baseAddress, $0.count) }
    }

    @discardableResult package func set(_ option: CURLoption, _ data: UnsafeMutableRawPointer?) -> CURLcode {
      downpipe_set_pointer(pointer, option, data)
    }

    package func number(_ info: CURLINFO) -> Int { downpipe_get_long(pointer, info) }

    /// A number of 64 bits, which libcurl gives for other items than ``number(_:)``; -1 when it has none.
    package func largeNumber(_ info: CURLINFO) -> Int64 { Int64(downpipe_get_off_t(pointer, info)) }

    /// Allows these protocols only.
    /// - Parameters:
    ///   - names: Their names, separated by commas.
    ///   - bits: The same as `CURLPROTO_` bits, for a libcurl before 7.85.
    package func setProtocols(_ names: String, bits: Int) -> CURLcode {
      downpipe_set_protocols(pointer, names, bits)
    }

    /// Sets all options back; the memory for its buffers is kept.
    func reset() {
      // A reset of libcurl forgets the first list without releasing it, and keeps the second one although it belongs to
      // the transfer.
      downpipe_set_text(pointer, CURLOPT_COOKIEFILE, nil)
      downpipe_set_list(pointer, CURLOPT_RESOLVE, nil)
      curl_easy_reset(pointer)
    }

    func destroy() { curl_easy_cleanup(pointer) }
  }

  /// A list of lines for libcurl, which does not copy it: it lives as long as the transfer.
  final class HeaderList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ lines: some Sequence<String>) {
      for line in lines {
        // On failure the list stays as it was; without memory the process does not live on.
        if let longer = curl_slist_append(first, line) { first = longer }
      }
    }

    deinit { curl_slist_free_all(first) }
  }
#endif
