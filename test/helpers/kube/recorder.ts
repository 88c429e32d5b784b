/**
 * Records every version of objects in the order of their writes, from a watch of the API server. It misses no version.
 */
import type { Test } from 'tap'
import type { KubeApi, KubeObject } from './node/api.ts'

export interface Version extends KubeObject {
  readonly kind: string
  readonly metadata: KubeObject['metadata'] & { readonly generation?: number }
}

export class Recorder {
  readonly #versions = new Map<string, Version[]>()
  readonly #problems: string[] = []

  /**
   * Watches the resources at these paths, such as `/apis/apps/v1/namespaces/default/deployments`, until the test ends.
   */
  static async start(t: Pick<Test, 'teardown'>, api: KubeApi, paths: readonly string[]): Promise<Recorder> {
    const recorder = new Recorder()
    const over = new AbortController()
    t.teardown(() => over.abort())
    for (const path of paths) {
      const { metadata }: { metadata: { resourceVersion: string } } = await api.send('GET', path)
      const watching = api.watch(path, metadata.resourceVersion, over.signal, ({ type, object }) =>
        recorder.#take(type, object as Version),
      )
      void watching.then(
        () => over.signal.aborted || recorder.#problems.push(`the watch of ${path} has ended`),
      )
    }
    return recorder
  }

  #take(type: string, object: Version): void {
    if (type === 'ERROR') this.#problems.push(JSON.stringify(object))
    if (type !== 'ADDED' && type !== 'MODIFIED') return
    const key = `${object.kind}/${object.metadata.name}`
    const known = this.#versions.get(key) ?? []
    known.push(object)
    this.#versions.set(key, known)
  }

  /** Returns all versions of an object so far, oldest first. Throws when a version may be missing. */
  versions(key: string): readonly Version[] {
    if (this.#problems.length > 0) throw new Error(this.#problems.join('; '))
    return this.#versions.get(key) ?? []
  }

  /** Returns the version of an object at the time when another one was written. */
  at(key: string, { metadata }: Version): Version | undefined {
    // All objects of one etcd share one sequence of revisions.
    const written = BigInt(metadata.resourceVersion)
    return this.versions(key).findLast((one) => BigInt(one.metadata.resourceVersion) <= written)
  }
}
