/**
 * Carries out the plan against a cluster until there is nothing left to do.
 *
 * Safe to run twice at once: the Secret is written with its resource version, the loser reads again, and the last act
 * of every run is to make the clients' configurations match the Secret. Needs rights on named objects only.
 */
import { GatehouseError } from '../../schemas/index.ts'
import { current, joinBundle, sameBundle } from './inspect.ts'
import { issue } from './issue.ts'
import { plan, type RotationStep, type Stored } from './plan.ts'

/** A place that holds what a client trusts: one webhook configuration, or one CompositeController. */
export interface TrustTarget {
  /** For messages: `compositecontroller/gatehouse-mcpservers`. */
  readonly name: string
  /** PEM bundles of every client entry in the object; '' for an entry without one. */
  read(): Promise<readonly string[]>
  /** Sets the bundle of every client entry. */
  write(bundle: string): Promise<void>
}

/** The Secret as read, with what is needed to write it back. */
export interface HeldCertificate {
  readonly stored: Stored
  readonly version: string
}

export interface Cluster {
  readSecret(): Promise<HeldCertificate>
  /** False when somebody else wrote the Secret since `version`. */
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
  /** Called for every step. */
  readonly report: (line: string) => void
}

/** A healthy run takes at most issue or stage, promote, retire, wait, and a few lost races. */
const stepsMax = 12

/** Brings Secret and clients to where they should be. Throws INTERNAL, naming the targets that could not be reached. */
export async function rotate(cluster: Cluster, options: RotateOptions): Promise<void> {
  let force = options.force
  for (let count = 0; count < stepsMax; count += 1) {
    const { stored, version } = await cluster.readSecret()
    const now = options.now()
    const trusted = stored.bundle === '' || (await spread(cluster.targets, stored.bundle, options.report))
    const step = plan({ ...options, stored, trustedEverywhere: trusted, now, force })
    options.report(`${step.do}: ${step.why}`)
    if (step.do === 'wait') return refuseUntrusted(trusted)
    const written = await take(step, stored, cluster, version, options)
    if (!written) options.report('retry: another run changed the Secret')
    else if (step.do === 'stage') force = false
  }
  throw new GatehouseError('INTERNAL', { detail: 'certificates: no stable state was reached; run again' })
}

async function take(
  step: Exclude<RotationStep, { do: 'wait' }>,
  stored: Stored,
  cluster: Cluster,
  version: string,
  options: RotateOptions,
): Promise<boolean> {
  if (step.do === 'promote' || step.do === 'retire') return cluster.writeSecret(version, step.stored)
  const now = options.now()
  const made = await issue({ names: options.names, now, lifetimeMs: options.lifetimeMs })
  const pair = { certificate: made.certificate, key: made.key }
  if (step.do === 'stage') {
    const bundle = joinBundle([...step.keep, made.ca])
    return cluster.writeSecret(version, { ...stored, next: pair, bundle, since: now })
  }
  const bundle = joinBundle([made.ca, ...step.keep])
  // Trust first. A target that cannot be written now is written by the next turn, from the Secret.
  await spread(cluster.targets, bundle, options.report)
  const next = { certificate: '', key: '' }
  return cluster.writeSecret(version, { serving: pair, next, bundle, since: now })
}

/** Writes the bundle where it differs; true when every target holds it. */
async function spread(
  targets: readonly TrustTarget[],
  bundle: string,
  report: (line: string) => void,
): Promise<boolean> {
  let all = true
  for (const target of targets) {
    try {
      const held = await target.read()
      if (held.every((one) => sameBundle(one, bundle))) continue
      await target.write(bundle)
      report(`trust: ${target.name} updated`)
    } catch (error) {
      all = false
      report(`trust: ${target.name} failed: ${error instanceof Error ? error.message : 'unknown failure'}`)
    }
  }
  return all
}

function refuseUntrusted(trusted: boolean): void {
  if (trusted) return
  throw new GatehouseError('INTERNAL', {
    detail: 'certificates: at least one client does not trust the hooks server yet; run again',
  })
}

/**
 * Spreads an authority that somebody else manages (cert-manager): the Secret's `ca.crt`, beside the authority that was
 * trusted until now as long as that one is valid. Throws INTERNAL when the Secret holds none, or a target failed.
 */
export async function publish(
  cluster: Cluster,
  options: Pick<RotateOptions, 'now' | 'report'>,
): Promise<void> {
  const now = options.now()
  const { stored } = await cluster.readSecret()
  const wanted = current(stored.bundle, now)
  if (wanted.length === 0) {
    throw new GatehouseError('INTERNAL', {
      detail: 'certificates: the Secret holds no valid ca.crt yet; run again',
    })
  }
  let all = true
  for (const target of cluster.targets) {
    const former = (await target.read().catch(() => [])).flatMap((bundle) => current(bundle, now))
    const known = new Set(wanted)
    const previous = [...new Set(former)].filter((one) => !known.has(one)).slice(0, 1)
    all = (await spread([target], joinBundle([...wanted, ...previous]), options.report)) && all
  }
  refuseUntrusted(all)
}
