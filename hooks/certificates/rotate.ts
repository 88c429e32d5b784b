/**
 * Executes rotation steps against a cluster until no steps are left.
 *
 * Concurrent runs are safe. Each run writes the Secret with its resource version, and a run that loses the race reads
 * the Secret again. Every run ends by syncing the clients' configurations to the Secret. Requires permissions on named
 * objects only.
 */
import { GatehouseError } from '../../schemas/index.ts'
import { currentCertificates, joinBundle, sameBundle } from './inspect.ts'
import { issueCertificate } from './issue.ts'
import { nextStep, type RotationStep, type Stored } from './plan.ts'

/** An object that stores the authorities that a client trusts: a webhook configuration or a CompositeController. */
export interface TrustTarget {
  /** Label used in messages, such as `compositecontroller/gatehouse-mcpservers`. */
  readonly name: string
  /** PEM bundle of each client entry in the object; '' for an entry without a bundle. */
  read(): Promise<readonly string[]>
  /** Sets the bundle in every client entry. */
  write(bundle: string): Promise<void>
}

/** The Secret as read, with the resource version that a write requires. */
export interface HeldCertificate {
  readonly stored: Stored
  readonly version: string
}

export interface Cluster {
  readSecret(): Promise<HeldCertificate>
  /** Returns false when another run wrote the Secret after `version`. */
  writeSecret(version: string, stored: Stored): Promise<boolean>
  readonly targets: readonly TrustTarget[]
}

export interface RotateOptions {
  readonly names: readonly string[]
  readonly lifetimeMs: number
  readonly renewBeforeMs: number
  readonly settleMs: number
  readonly force: boolean
  readonly now: () => Date
  /** Called with a line of text for every step. */
  readonly report: (line: string) => void
}

/** A healthy run needs at most these steps: issue or stage, promote, retire and wait, plus retries after lost races. */
const stepsMax = 12

/**
 * Rotates until the Secret and all clients are up to date. Throws INTERNAL when a client does not trust the Secret's
 * authorities yet.
 */
export async function rotateCertificate(cluster: Cluster, options: RotateOptions): Promise<void> {
  let force = options.force
  for (let count = 0; count < stepsMax; count += 1) {
    const { stored, version } = await cluster.readSecret()
    const now = options.now()
    const trusted =
      stored.bundle === '' || (await distributeBundle(cluster.targets, stored.bundle, options.report))
    const step = nextStep({ ...options, stored, trustedEverywhere: trusted, now, force })
    options.report(`${step.do}: ${step.why}`)
    if (step.do === 'wait') return throwIfUntrusted(trusted)
    const written = await executeStep(step, stored, cluster, version, options)
    if (!written) options.report('retry: another run changed the Secret')
    else if (step.do === 'stage') force = false
  }
  throw new GatehouseError('INTERNAL', { detail: 'certificates: did not reach a stable state; run again' })
}

async function executeStep(
  step: Exclude<RotationStep, { do: 'wait' }>,
  stored: Stored,
  cluster: Cluster,
  version: string,
  options: RotateOptions,
): Promise<boolean> {
  if (step.do === 'promote' || step.do === 'retire') return cluster.writeSecret(version, step.stored)
  const now = options.now()
  const made = await issueCertificate({ names: options.names, now, lifetimeMs: options.lifetimeMs })
  const pair = { certificate: made.certificate, key: made.key }
  if (step.do === 'stage') {
    const bundle = joinBundle([...step.keep, made.ca])
    return cluster.writeSecret(version, { ...stored, next: pair, bundle, since: now })
  }
  const bundle = joinBundle([made.ca, ...step.keep])
  // Update trust first. The next iteration retries failed targets from the Secret.
  await distributeBundle(cluster.targets, bundle, options.report)
  const next = { certificate: '', key: '' }
  return cluster.writeSecret(version, { serving: pair, next, bundle, since: now })
}

/** Writes the bundle to the targets whose bundle differs. Returns true when every target is up to date. */
async function distributeBundle(
  targets: readonly TrustTarget[],
  bundle: string,
  report: (line: string) => void,
): Promise<boolean> {
  let all = true
  for (const target of targets) {
    try {
      const bundles = await target.read()
      if (bundles.every((stored) => sameBundle(stored, bundle))) continue
      await target.write(bundle)
      report(`trust: ${target.name} updated`)
    } catch (error) {
      all = false
      report(`trust: ${target.name} failed: ${error instanceof Error ? error.message : 'unknown failure'}`)
    }
  }
  return all
}

function throwIfUntrusted(trusted: boolean): void {
  if (trusted) return
  throw new GatehouseError('INTERNAL', {
    detail: 'certificates: at least one client does not trust the hooks server yet; run again',
  })
}

/**
 * Distributes an externally managed authority (cert-manager): the Secret's `ca.crt`, plus the previously trusted
 * authority while it is valid. Throws INTERNAL when the Secret has no valid authority or a target failed.
 */
export async function publishAuthority(
  cluster: Cluster,
  options: Pick<RotateOptions, 'now' | 'report'>,
): Promise<void> {
  const now = options.now()
  const { stored } = await cluster.readSecret()
  const wanted = currentCertificates(stored.bundle, now)
  if (wanted.length === 0) {
    throw new GatehouseError('INTERNAL', {
      detail: 'certificates: the Secret holds no valid ca.crt yet; run again',
    })
  }
  let all = true
  for (const target of cluster.targets) {
    const former = (await target.read().catch(() => [])).flatMap((bundle) => currentCertificates(bundle, now))
    const known = new Set(wanted)
    const previous = [...new Set(former)].filter((one) => !known.has(one)).slice(0, 1)
    all = (await distributeBundle([target], joinBundle([...wanted, ...previous]), options.report)) && all
  }
  throwIfUntrusted(all)
}
