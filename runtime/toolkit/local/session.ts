/**
 * A `gatehouse dev` session: reconciles manifests with the hooks and runs the rendered workloads as local processes.
 *
 * The caller declares only valid manifests, so an invalid edit changes nothing. All work goes through one queue, so
 * that hooks, files and processes never use a partial change.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Hooks, LocalCluster } from './cluster/cluster.ts'
import { type LocalObject, objectKey } from '../manifests/objects.ts'
import type { Cause } from '../../observe/index.ts'
import { watchGroups } from '../../proxy/index.ts'
import type { SessionAccess } from './access.ts'
import { Addresses } from './addresses.ts'
import { causesFileIn, CauseFiles } from './causes.ts'
import { type ProcessPlan, type PlanContext, planOf } from './plan.ts'
import { podTemplateOf, replicasOf } from './pods.ts'
import { PackageFetcher } from './processes/packages.ts'
import { ProcessRunner } from './processes/runner.ts'
import { printError } from '../terminal/output.ts'
import { removeAbandoned, RunningNames } from '../targets/running.ts'
import { ModuleError } from '../../../schemas/index.ts'

export interface SessionOptions {
  readonly hooks: Hooks
  readonly port: number
  readonly runtimeImage: string
  readonly self: readonly string[]
  /** Folder for the locks of backends that do not have one yet. */
  readonly pinFirst?: string | undefined
  readonly baseEnv: Readonly<Record<string, string>>
  /** Private folder for rendered files. */
  readonly folder: string
  readonly onChange: (session: DevSession) => void
  readonly onLine: (workload: LocalObject, parent: LocalObject, line: string) => void
  /** Called with a line about a package that is being installed. Default: prints the line to standard error. */
  readonly onProgress?: (line: string) => void
  /** Called with an internal error that occurs while applying a change. The session continues. */
  readonly onError: (error: unknown) => void
  /** Files and folders of the manifests. The console writes approvals to the manifests. Default: none. */
  readonly manifests?: readonly string[]
  /** Tokens that the session's ports require. Default: all local programs may use the ports. */
  readonly access?: SessionAccess | undefined
  /** Time after which a process that is still not ready is reported. */
  readonly startMs: number
}

/** A workload in the local cluster, and the state of its process. */
export interface WorkloadView {
  readonly workload: LocalObject
  readonly parent: LocalObject
  readonly phase: 'starting' | 'ready' | 'failed' | 'not runnable'
  readonly why?: string
  /** Reason why the workload does not respond. Undefined while the workload is ready, and during an ordinary start. */
  readonly cause?: Cause
  readonly lines?: readonly string[]
  readonly port?: number
  readonly consoleUrl?: string | undefined
  /** Values from Secrets that the workload's output can contain. */
  readonly secrets?: readonly string[]
  readonly restarts?: number
  readonly lastEnd?: string
  /** Set until a stdio server responds to its first request. */
  readonly starting?: { readonly since: number; readonly lines: readonly string[] } | undefined
  /** Error that a stdio server returned instead of opening a session. */
  readonly refusal?: string | undefined
}

/** Delay before a failed file write is retried. */
const retryMs = 5000
/** Interval at which the causes of failures are written; each step writes them too. */
const causesMs = 500

export class DevSession {
  readonly cluster: LocalCluster
  readonly #options: SessionOptions
  readonly #addresses: Addresses
  readonly #consoleToken = randomBytes(32).toString('base64url')
  /** Key that lets the user start logins at this session's backends. */
  readonly signInKey = randomBytes(32).toString('base64url')
  readonly #runners = new Map<string, ProcessRunner>()
  readonly #notRunnable = new Map<string, string>()
  readonly #names: RunningNames
  readonly #packages: PackageFetcher
  readonly #causes = new CauseFiles()
  #queue: Promise<void> = Promise.resolve()
  #stepWaiting = false
  #stopped = false
  #retry: NodeJS.Timeout | undefined
  readonly #causesTimer: NodeJS.Timeout

  constructor(options: SessionOptions) {
    this.#options = options
    this.cluster = new LocalCluster(options.hooks, () => new Date())
    this.#addresses = new Addresses(options.port)
    this.#names = new RunningNames(options.folder, { signInKey: this.signInKey, token: this.token })
    this.#packages = new PackageFetcher(options.onProgress ?? printError)
    // A stdio server's state changes with its sessions, which do not trigger a step.
    this.#causesTimer = setInterval(() => this.#updateCauses(), causesMs).unref()
    watchGroups()
    removeAbandoned()
  }

  #updateCauses(): void {
    this.#causes.update(this.#options.folder, this.workloads)
  }

  /**
   * Makes `docs` the declared state and reconciles. Resolves with the objects that were created, changed or removed.
   */
  async declare(docs: readonly LocalObject[]): Promise<readonly LocalObject[]> {
    let changed: readonly LocalObject[] = []
    await this.#enqueue(async () => {
      changed = this.cluster.declare(docs)
      await this.#step()
    })
    return changed
  }

  /** Stops and starts the processes of one resource. Resolves to false when no resource has this name. */
  async restart(name: string): Promise<boolean> {
    const found = this.#wanted().filter(({ parent }) => parent.metadata.name === name)
    await this.#enqueue(async () => {
      for (const { workload } of found) {
        const runner = this.#runners.get(objectKey(workload))
        this.#runners.delete(objectKey(workload))
        await runner?.stop()
      }
      await this.#step()
    })
    return found.length > 0
  }

  /** Stops all processes. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#causesTimer)
    clearTimeout(this.#retry)
    await this.#queue
    await this.#packages.stop()
    await Promise.all([...this.#runners.values()].map((runner) => runner.stop()))
    this.#runners.clear()
  }

  /** Token that the session's servers require. Undefined when the servers require no token. */
  get token(): string | undefined {
    return this.#options.access?.token
  }

  get workloads(): readonly WorkloadView[] {
    return this.#wanted().map(({ workload, parent }) => {
      const key = objectKey(workload)
      const runner = this.#runners.get(key)
      if (!runner) {
        const why = this.#notRunnable.get(key)
        if (why === undefined) return { workload, parent, phase: 'starting' }
        return {
          workload,
          parent,
          phase: 'not runnable',
          why,
          cause: { category: 'not_runnable', detail: why },
        }
      }
      const { port, consoleUrl, secrets } = runner.plan
      const { starting, refusal, state } = runner
      return { workload, parent, port, consoleUrl, secrets, starting, refusal, ...state }
    })
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(work).catch((error: unknown) => this.#options.onError(error))
    return this.#queue
  }

  /** Schedules another step unless a step is already scheduled. */
  #notify(): void {
    if (this.#stepWaiting || this.#stopped) return
    this.#stepWaiting = true
    void this.#enqueue(async () => {
      this.#stepWaiting = false
      await this.#step()
    })
  }

  async #step(): Promise<void> {
    if (this.#stopped) return
    this.#report()
    this.cluster.reconcile()
    await this.#align()
    this.#report()
    this.cluster.reconcile()
    this.#names.update(this.workloads)
    this.#updateCauses()
    this.#options.onChange(this)
  }

  /** Starts, restarts and stops processes until they match the cluster. */
  async #align(): Promise<void> {
    const wanted = this.#wanted()
    const keys = new Set(wanted.map(({ workload }) => objectKey(workload)))
    for (const [key, runner] of this.#runners) {
      if (keys.has(key)) continue
      this.#runners.delete(key)
      await runner.stop()
    }
    this.#notRunnable.clear()
    await this.#assignPorts(wanted)
    for (const { workload, parent } of wanted) await this.#alignOne(workload, parent)
  }

  /** Assigns all ports first, because a workload's files can refer to any other Service. */
  async #assignPorts(wanted: readonly { workload: LocalObject; parent: LocalObject }[]): Promise<void> {
    for (const { workload, parent } of wanted) {
      const ports = podTemplateOf(workload)?.spec.containers[0]?.ports ?? [{ containerPort: 8080 }]
      for (const { containerPort } of ports) {
        await this.#addresses.portOf(workload, containerPort, {
          isEntrance: parent.kind === 'VirtualMCPServer',
        })
      }
    }
  }

  async #alignOne(workload: LocalObject, parent: LocalObject): Promise<void> {
    const key = objectKey(workload)
    const plan = await this.#plan(workload, parent)
    const running = this.#runners.get(key)
    if (plan instanceof UnwritableFile) {
      // A running process continues to use its current files.
      this.#retryLater()
      if (running) this.#options.onError(plan)
      else this.#notRunnable.set(key, plan.message)
      return
    }
    if (typeof plan === 'string') {
      this.#notRunnable.set(key, plan)
      this.#runners.delete(key)
      await running?.stop()
      return
    }
    if (running?.plan.fingerprint === plan.fingerprint) return
    await running?.stop()
    const runner = new ProcessRunner(plan, this.#options.startMs, {
      packages: this.#packages,
      onChange: () => this.#notify(),
      onLine: (line) => this.#options.onLine(workload, parent, line),
    })
    this.#runners.set(key, runner)
  }

  async #plan(workload: LocalObject, parent: LocalObject): Promise<ProcessPlan | string | UnwritableFile> {
    const { folder, runtimeImage, self, baseEnv, pinFirst, manifests = [], access } = this.#options
    const context: PlanContext = {
      causesFile: causesFileIn(folder, workload.metadata.namespace),
      objects: this.cluster.objects,
      addresses: this.#addresses,
      folder: join(folder, `${workload.metadata.namespace}_${workload.kind}_${workload.metadata.name}`),
      runtimeImage,
      self,
      pinFirst,
      baseEnv,
      consoleToken: this.#consoleToken,
      signInKey: this.signInKey,
      access,
      manifests,
    }
    try {
      return await planOf(workload, parent, context)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException | undefined)?.code
      const message = error instanceof Error ? error.message : String(error)
      return isSystemError(error) ? new UnwritableFile(folder, code ?? message) : message
    }
  }

  #retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.#notify(), retryMs).unref()
  }

  /** Writes process states to the workloads' status, as the kubelet and the Deployment controller do. */
  #report(): void {
    for (const { workload } of this.#wanted()) {
      const ready = this.#runners.get(objectKey(workload))?.state.phase === 'ready' ? 1 : 0
      this.cluster.setStatus(workload, workloadStatus(workload, ready))
    }
  }

  #wanted(): { workload: LocalObject; parent: LocalObject }[] {
    return this.cluster.objects.flatMap((workload) => {
      const parent = this.cluster.parentOf(workload)
      return podTemplateOf(workload) && parent && replicasOf(workload) > 0 ? [{ workload, parent }] : []
    })
  }
}

/** Returns the status of a one-replica Deployment or StatefulSet with `ready` ready replicas. */
export function workloadStatus(workload: LocalObject, ready: number): Record<string, unknown> {
  return {
    observedGeneration: workload.metadata.generation ?? 1,
    replicas: 1,
    updatedReplicas: 1,
    readyReplicas: ready,
    availableReplicas: ready,
    ...(ready === 0 && { unavailableReplicas: 1 }),
  }
}

/** The write failed, for example because the disk is full or the folder is read-only. */
export class UnwritableFile extends ModuleError {
  constructor(folder: string, code: string) {
    super(`cannot write to ${folder} (${code}); free up space there, or set TMPDIR to another folder`)
  }
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error
}
