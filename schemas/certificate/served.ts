/**
 * The certificate that a program serves, from two files that are followed: a new pair is taken without a restart and
 * without closing a connection. One that cannot be used is told, and the one before stays.
 */
import { X509Certificate } from 'node:crypto'
import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { invalidConfig } from '../errors.ts'
import { formatViolations, type Violation } from '../validation/violations.ts'
import { pairViolations } from './pair.ts'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
  /** The authority whose client certificates are accepted. */
  readonly clientCaFile?: string | undefined
}

export interface CertificateObserver {
  /** A new pair is served. */
  readonly onReloaded?: (certificate: ServedCertificate) => void
  /** What was found cannot be used; told once for each content. */
  readonly onUnusable?: (reason: string) => void
  /** Each minute. */
  readonly onLook?: (certificate: ServedCertificate) => void
}

/** What both `https.Server` and `tls.Server` have. */
interface SecureServer {
  setSecureContext(options: SecureContextOptions): void
}

interface Pair {
  readonly options: SecureContextOptions
  /** When the certificate ends, milliseconds since the epoch. */
  readonly endsAt: number
}

/** Some mounts give no notice of a change. */
const pollMs = 60_000
/** Two files that are written one after the other are read together. */
const settleMs = 200
/** No content of files. */
const missing = 'missing'

export class ServedCertificate {
  readonly #files: CertificateFiles
  readonly #observer: CertificateObserver
  readonly #servers = new Set<SecureServer>()
  readonly #watchers: readonly FSWatcher[]
  readonly #poll: NodeJS.Timeout
  #settle: NodeJS.Timeout | undefined
  #content: string | undefined
  #pair: Pair

  /** Reads and checks the files, and follows them. Throws INVALID_CONFIG with everything that is wrong. */
  constructor(files: CertificateFiles, observer: CertificateObserver = {}) {
    this.#files = files
    this.#observer = observer
    this.#content = contentOf(files)
    this.#pair = readPair(files)
    this.#poll = setInterval(() => this.look(), pollMs)
    this.#poll.unref()
    // A mounted Secret is swapped by a symbolic link beside the files.
    const folders = new Set(pathsOf(files).map((file) => dirname(file)))
    this.#watchers = [...folders].map((folder) => this.#watch(folder))
  }

  /** For new connections, from now on. */
  get options(): SecureContextOptions {
    return this.#pair.options
  }

  /** When what is served ends, milliseconds since the epoch. */
  get endsAt(): number {
    return this.#pair.endsAt
  }

  /** Gives each new pair to the server, which was made with `options`. */
  follow(server: SecureServer): void {
    this.#servers.add(server)
  }

  unfollow(server: SecureServer): void {
    this.#servers.delete(server)
  }

  /** Reads the files now, if they have changed. Returns whether a new pair is served. */
  reload(): boolean {
    const content = contentOf(this.#files)
    if (content === undefined || content === this.#content) return false
    this.#content = content
    try {
      const pair = readPair(this.#files)
      if (pair.endsAt <= Date.now() && this.#pair.endsAt > Date.now())
        throw invalidConfig(`${this.#files.certFile}: the certificate has ended already`)
      for (const server of this.#servers) server.setSecureContext(pair.options)
      this.#pair = pair
    } catch (error) {
      this.#observer.onUnusable?.(error instanceof Error ? error.message : 'unknown error')
      return false
    }
    this.#observer.onReloaded?.(this)
    return true
  }

  /** What happens each minute: files that are still missing are not those of a swap, and the observer may look at the end. */
  look(): void {
    if (contentOf(this.#files) !== undefined) this.reload()
    else if (this.#content !== missing) {
      this.#content = missing
      this.#observer.onUnusable?.('the files are gone')
    }
    this.#observer.onLook?.(this)
  }

  close(): void {
    clearInterval(this.#poll)
    clearTimeout(this.#settle)
    for (const watcher of this.#watchers) watcher.close()
    this.#servers.clear()
  }

  #watch(folder: string): FSWatcher {
    const watcher = watch(folder, { persistent: false }, () => {
      clearTimeout(this.#settle)
      this.#settle = setTimeout(() => this.reload(), settleMs)
      this.#settle.unref()
    })
    // The folder is gone; the poll goes on.
    watcher.on('error', () => watcher.close())
    return watcher
  }
}

/** Throws INVALID_CONFIG with everything that is wrong with the files. */
export function checkCertificate(files: CertificateFiles): void {
  readPair(files)
}

/** When the certificate in the file ends, milliseconds since the epoch; undefined while it cannot be read. */
export function certificateEndsAt({ certFile }: CertificateFiles): number | undefined {
  try {
    return endOf(readFileSync(certFile))
  } catch {
    return undefined
  }
}

function endOf(pem: string | Buffer): number {
  return new X509Certificate(pem).validToDate.getTime()
}

function readPair(files: CertificateFiles): Pair {
  const violations: Violation[] = []
  function read(path: string): string {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      violations.push({ path, message: 'the file cannot be read' })
      return ''
    }
  }
  const { certFile, keyFile, clientCaFile } = files
  const cert = read(certFile)
  const key = read(keyFile)
  const ca = clientCaFile === undefined ? undefined : read(clientCaFile)
  if (violations.length === 0) {
    violations.push(...pairViolations({ cert, key }, { cert: certFile, key: keyFile }))
    if (ca !== undefined && !isAuthority(ca))
      violations.push({ path: clientCaFile ?? '', message: 'holds no certificate of an authority' })
  }
  if (violations.length > 0) throw invalidConfig(formatViolations(violations))
  const options = { cert, key, minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) }
  try {
    createSecureContext(options)
  } catch (cause) {
    throw invalidConfig(`${certFile}, ${keyFile}: TLS does not take them${reasonOf(cause)}`, cause)
  }
  return { options, endsAt: endOf(cert) }
}

/** OpenSSL's own words, which name no content. */
function reasonOf(error: unknown): string {
  const { reason } = error as { readonly reason?: unknown }
  return typeof reason === 'string' ? `: ${reason}` : ''
}

/** OpenSSL takes a file without a certificate for an authority that signs nothing: nobody would get in, untold. */
function isAuthority(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca
  } catch {
    return false
  }
}

function pathsOf({ certFile, keyFile, clientCaFile }: CertificateFiles): string[] {
  return [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])]
}

/** The files as one text; undefined while one of them is missing, as during a swap. */
function contentOf(files: CertificateFiles): string | undefined {
  try {
    return pathsOf(files)
      .map((file) => readFileSync(file, 'latin1'))
      .join('\0')
  } catch {
    return undefined
  }
}
