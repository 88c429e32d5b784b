/** Who asks: where the connection comes from, and whom the request speaks for. */
export interface QueueRequester {
  readonly address: string
  /** Only as true as the client at that address is. */
  readonly user: string
}

/**
 * A queue with turns: addresses take turns, and at each address its users. However many tasks one of them has put in, or
 * how many users it invents, the first task of another address is behind one of each address at most.
 */
export class FairQueue<T> {
  readonly #addresses = new Turns<Turns<T[]>>()

  /** How many tasks wait: of a user, and of all users at that address. */
  count({ address, user }: QueueRequester): { readonly user: number; readonly address: number } {
    const users = this.#addresses.get(address)
    return { user: users?.get(user)?.length ?? 0, address: users?.sum((tasks) => tasks.length) ?? 0 }
  }

  push({ address, user }: QueueRequester, task: T): void {
    const users = this.#addresses.getOrAdd(address, () => new Turns<T[]>())
    users.getOrAdd(user, () => []).push(task)
  }

  /** The next task; the others of its user and of its address are behind those of everybody else. */
  shift(): T | undefined {
    const users = this.#addresses.next()
    const tasks = users?.next()
    const task = tasks?.shift()
    users?.endTurn(tasks?.length === 0)
    this.#addresses.endTurn(users?.size === 0)
    return task
  }

  /** False when the task does not wait any more. */
  remove({ address, user }: QueueRequester, task: T): boolean {
    const users = this.#addresses.get(address)
    const tasks = users?.get(user)
    const at = tasks?.indexOf(task) ?? -1
    if (!users || !tasks || at < 0) return false
    tasks.splice(at, 1)
    if (tasks.length === 0) users.delete(user)
    if (users.size === 0) this.#addresses.delete(address)
    return true
  }
}

/** Members in the order of their turns: who had one goes to the end. */
class Turns<M> {
  readonly #members = new Map<string, M>()

  get size(): number {
    return this.#members.size
  }

  get(name: string): M | undefined {
    return this.#members.get(name)
  }

  getOrAdd(name: string, make: () => M): M {
    const known = this.#members.get(name) ?? make()
    if (!this.#members.has(name)) this.#members.set(name, known)
    return known
  }

  delete(name: string): void {
    this.#members.delete(name)
  }

  sum(count: (member: M) => number): number {
    return [...this.#members.values()].reduce((all, member) => all + count(member), 0)
  }

  /** Whose turn it is. */
  next(): M | undefined {
    const [first] = this.#members.values()
    return first
  }

  /** The member whose turn it was goes to the end, or away when it is `empty`. */
  endTurn(empty: boolean | undefined): void {
    const [first] = this.#members
    if (!first) return
    const [name, member] = first
    this.#members.delete(name)
    if (empty !== true) this.#members.set(name, member)
  }
}
