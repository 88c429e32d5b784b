/**
 * Serving certificate files that are reloaded again when they change, without a restart and without dropping a
 * connection. A pair that cannot be read or does not fit is reported and the old one stays.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** Reads and checks the pair. Throws when a file is missing or key and certificate do not belong together. */
export function loadCertificate({ certFile, keyFile }: CertificateFiles): SecureContextOptions {
  const options = { cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: 'TLSv1.2' as const }
  createSecureContext(options)
  return options
}

/** When the certificate in the file ends, milliseconds since the epoch; undefined while it cannot be read. */
export function certificateEndsAt({ certFile }: CertificateFiles): number | undefined {
  try {
    return new X509Certificate(readFileSync(certFile)).validToDate.getTime()
  } catch {
    return undefined
  }
}

export interface CertificateWatch {
  /** Reads the files now; returns whether a new pair was reloaded. */
  readonly reload: () => boolean
  readonly close: () => void
}

const pollMs = 60_000

/**
 * Watches the folders of both files (a mounted Secret is swapped by a symbolic link beside them) and calls `apply` with
 * each new valid pair.
 */
export function watchCertificate(
  files: CertificateFiles,
  apply: (options: SecureContextOptions) => void,
  onError: () => void,
): CertificateWatch {
  let current = contentOf(files)
  const reload = () => {
    const next = contentOf(files)
    if (next === undefined || next === current) return false
    try {
      apply(loadCertificate(files))
      current = next
      return true
    } catch {
      onError()
      return false
    }
  }
  // Some mounts give no notice of a change.
  const poll = setInterval(reload, pollMs)
  poll.unref()
  const folders = new Set([dirname(files.certFile), dirname(files.keyFile)])
  const watchers = [...folders].map((folder) => watch(folder, { persistent: false }, reload))
  return {
    reload,
    close() {
      clearInterval(poll)
      for (const watcher of watchers) watcher.close()
    },
  }
}

/** Both files as one text; undefined while one of them is missing, as during a swap. */
function contentOf({ certFile, keyFile }: CertificateFiles): string | undefined {
  try {
    return `${readFileSync(certFile, 'latin1')}\0${readFileSync(keyFile, 'latin1')}`
  } catch {
    return undefined
  }
}
