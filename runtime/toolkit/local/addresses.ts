/**
 * Assigns a loopback port to each of a workload's container ports, and rewrites Service URLs to those ports.
 *
 * A workload keeps its port for the lifetime of the session, so URLs survive a restart.
 */
import { randomInt } from 'node:crypto'
import type { LocalObject } from '../manifests/objects.ts'
import { objectKey } from '../manifests/objects.ts'
import { podTemplateOf } from './pods.ts'
import { isFree } from './processes/ports.ts'

export class Addresses {
  readonly #ports = new Map<string, number>()
  readonly #preferred: number
  #preferredTaken = false

  /** `preferred` is the port of the first VirtualMCPServer. */
  constructor(preferred: number) {
    this.#preferred = preferred
  }

  /** Returns the local port for a workload's container port, assigning one on first use. */
  async portOf(
    workload: LocalObject,
    containerPort: number,
    { isEntrance }: { readonly isEntrance: boolean },
  ): Promise<number> {
    const key = `${objectKey(workload)}:${containerPort}`
    let port = this.#ports.get(key)
    if (port === undefined) {
      port = isEntrance && !this.#preferredTaken ? this.#preferred : await freePort([...this.#ports.values()])
      if (isEntrance) this.#preferredTaken = true
      this.#ports.set(key, port)
    }
    return port
  }

  /**
   * Rewrites every in-cluster Service URL in `text` whose workload has a local port. If a configuration file allows
   * private addresses for its backends, the result also allows loopback addresses.
   */
  localise(text: string, objects: readonly LocalObject[]): string {
    const localised = this.#localUrls(text, objects)
    return localised === text
      ? text
      : localised.replaceAll(/^([\s-]*(?:addresses|targetAddresses): )private$/gm, '$1any')
  }

  #localUrls(text: string, objects: readonly LocalObject[]): string {
    return text.replaceAll(
      /https?:\/\/([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?(?::(\d+))?/g,
      (url, service: string, namespace: string, port: string | undefined) => {
        const local = this.#servicePort(objects, service, namespace, Number(port ?? 80))
        return local === undefined ? url : `http://127.0.0.1:${local}`
      },
    )
  }

  #servicePort(
    objects: readonly LocalObject[],
    name: string,
    namespace: string,
    port: number,
  ): number | undefined {
    const service = objects.find(
      (o) => o.kind === 'Service' && o.metadata.name === name && o.metadata.namespace === namespace,
    )
    const spec = service?.spec as ServiceSpec | undefined
    const entry = spec?.ports?.find((candidate) => candidate.port === port)
    if (!entry) return undefined
    for (const workload of objects) {
      const template = podTemplateOf(workload)
      if (!template || workload.metadata.namespace !== namespace) continue
      const labels = template.metadata?.labels ?? {}
      if (!Object.entries(spec?.selector ?? {}).every(([key, value]) => labels[key] === value)) continue
      const target = entry.targetPort ?? entry.port
      const containerPort =
        typeof target === 'number'
          ? target
          : template.spec.containers.flatMap((c) => c.ports ?? []).find((p) => p.name === target)
              ?.containerPort
      const local = this.#ports.get(`${objectKey(workload)}:${containerPort}`)
      if (local !== undefined) return local
    }
    return undefined
  }
}

interface ServiceSpec {
  selector?: Record<string, string>
  ports?: { port: number; targetPort?: number | string }[]
}

/** These ports are below the ranges that Linux, macOS and Windows assign dynamically. */
const firstPort = 20_000
const portCount = 12_000
const maxTries = 50

/**
 * Returns a free loopback port outside the dynamic range. The program that will listen there may take seconds to start.
 * Meanwhile, the system must not assign the port to another program.
 */
async function freePort(taken: readonly number[]): Promise<number> {
  for (let tries = 0; tries < maxTries; tries++) {
    const port = firstPort + randomInt(portCount)
    if (!taken.includes(port) && (await isFree(port))) return port
  }
  throw new Error(`no free port found between ${firstPort} and ${firstPort + portCount}`)
}
