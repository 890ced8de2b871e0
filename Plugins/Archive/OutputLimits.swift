#if Archive
  import DownpipeGzip

  extension OutputLimit {
    /// The lower one of a limit in bytes and a limit on the ratio to the input.
    ///
    /// - Parameter names: What to raise.
    static func lowest(
      bytes: Int64?, ratio: Int64?, free: Int64, input: Int64, names: (bytes: String, ratio: String)
    ) -> OutputLimit {
      var limits: [OutputLimit] = []
      if let bytes {
        limits.append(
          OutputLimit(
            byteCount: bytes,
            explanation: "the file unpacks to more than \(bytes) bytes: raise \(names.bytes) to allow it"))
      }
      if let ratio {
        let (product, isTooMuch) = input.multipliedReportingOverflow(by: ratio)
        let most = max(free, isTooMuch ? .max : product)
        limits.append(
          OutputLimit(
            byteCount: most,
            explanation:
              "the file of \(input) bytes unpacks to more than \(most) bytes, as a decompression bomb does: raise "
              + "\(names.ratio) if you trust the file"))
      }
      return limits.min { $0.byteCount < $1.byteCount }
        ?? OutputLimit(byteCount: .max, explanation: "the file unpacks to more bytes than can be counted")
    }

    /// The limit for the decompressed bytes of an archive, which are read and not written: headers, padding, and entries
    /// that are left out.
    var withHeaders: OutputLimit {
      let (sum, isTooMuch) = byteCount.addingReportingOverflow(4 << 30)
      return OutputLimit(byteCount: isTooMuch ? .max : sum, explanation: explanation)
    }
  }
#endif
