/**
 * Serving certificate files that are reloaded when they change, without a restart and without dropping a
 * connection. A pair that cannot be read or does not fit is reported and the old one stays.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
  /** The authority whose client certificates are accepted. */
  readonly clientCaFile?: string
}

/** Reads and checks the files. Throws when one is missing or no certificate, or the key does not belong to its own. */
export function loadCertificate({ certFile, keyFile, clientCaFile }: CertificateFiles): SecureContextOptions {
  const ca = clientCaFile === undefined ? undefined : certificatesIn(clientCaFile)
  const options = {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    minVersion: 'TLSv1.2' as const,
    ...(ca && { ca }),
  }
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
 * Watches the folders of the files (a mounted Secret is swapped by a symbolic link beside them) and calls `apply` with
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
  const folders = new Set(filesOf(files).map((file) => dirname(file)))
  const watchers = [...folders].map((folder) => watch(folder, { persistent: false }, reload))
  return {
    reload,
    close() {
      clearInterval(poll)
      for (const watcher of watchers) watcher.close()
    },
  }
}

/** OpenSSL takes a file without a certificate for an authority that signs nothing: nobody would get in, untold. */
function certificatesIn(file: string): Buffer {
  const pem = readFileSync(file)
  if (new X509Certificate(pem).ca) return pem
  throw new Error(`${file} holds no certificate of an authority`)
}

function filesOf({ certFile, keyFile, clientCaFile }: CertificateFiles): string[] {
  return [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])]
}

/** The files as one text; undefined while one of them is missing, as during a swap. */
function contentOf(files: CertificateFiles): string | undefined {
  try {
    return filesOf(files)
      .map((file) => readFileSync(file, 'latin1'))
      .join('\0')
  } catch {
    return undefined
  }
}
