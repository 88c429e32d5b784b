/** Identifies a requester by connection and user. */
export interface QueueRequester {
  readonly address: string
  /** The user is only as trustworthy as the client at `address`. */
  readonly user: string
}

/**
 * A fair queue. Addresses take turns, and the users of an address take turns within it. However many tasks and users an
 * address has, it delays another address's first task by at most one task.
 */
export class FairQueue<T> {
  readonly #addresses = new Turns<Turns<T[]>>()

  /** Returns two counts of waiting tasks: the user's tasks, and the tasks of all users at the address. */
  count({ address, user }: QueueRequester): { readonly user: number; readonly address: number } {
    const users = this.#addresses.get(address)
    return { user: users?.get(user)?.length ?? 0, address: users?.sum((tasks) => tasks.length) ?? 0 }
  }

  push({ address, user }: QueueRequester, task: T): void {
    const users = this.#addresses.getOrAdd(address, () => new Turns<T[]>())
    users.getOrAdd(user, () => []).push(task)
  }

  /** Removes and returns the next task. The task's user and address then move to the end of their queues. */
  shift(): T | undefined {
    const users = this.#addresses.next()
    const tasks = users?.next()
    const task = tasks?.shift()
    users?.endTurn(tasks?.length === 0)
    this.#addresses.endTurn(users?.size === 0)
    return task
  }

  /** Returns false when the task is no longer waiting. */
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

/** Members in the order in which they take turns. A member moves to the end after its turn. */
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

  /** Returns the member whose turn it is. */
  next(): M | undefined {
    const [first] = this.#members.values()
    return first
  }

  /** Ends the current turn: removes the member when `empty`, otherwise moves it to the end. */
  endTurn(empty: boolean | undefined): void {
    const [first] = this.#members
    if (!first) return
    const [name, member] = first
    this.#members.delete(name)
    if (empty !== true) this.#members.set(name, member)
  }
}
