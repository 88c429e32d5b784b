/**
 * Collects the questions that a session-era backend asks while a task needs input, for clients of the extension. Such a
 * backend asks on the response stream of `tasks/result`, so Gatehouse keeps one such request open per task. The client
 * reads the questions with `tasks/get` and answers with `tasks/update`.
 *
 * The questions live in this process. Another replica sends `tasks/result` itself, and the backend asks again.
 * Source: MCP 2025-11-25, tasks, "Input Required Status"; ext-tasks, "Task Update Requests".
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  type Ask,
  type AskReply,
  inputRequests,
  type JsonObject,
  statelessQuestion,
} from '../../../mcp/index.ts'
import type { TaskRef } from '../../model/task.ts'

const maxHeld = 1_000
const maxQuestions = 32
/** Time to wait for the first question, in milliseconds. */
const firstQuestionMs = 2_000
/** Time after the latest read for which the request to the backend stays open, in milliseconds. */
const idleMs = 10 * 60_000

interface Question {
  readonly ask: Ask
  settle(reply: AskReply): void
}

/** Questions of one task. Each key is used only once. */
export class Questions {
  readonly #prefix = randomUUID().slice(0, 8)
  readonly #open = new Map<string, Question>()
  readonly #waiting = new Set<() => void>()
  #next = 1
  #hasEnded = false

  /** Resolves with the client's answer. `signal` withdraws the question. */
  ask(ask: Ask, signal: AbortSignal | undefined): Promise<AskReply> {
    if (signal?.aborted) return Promise.reject(withdrawn())
    if (this.#open.size >= maxQuestions)
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many concurrent questions' }))
    const key = `${this.#prefix}-${this.#next++}`
    const { promise, resolve, reject } = Promise.withResolvers<AskReply>()
    this.#open.set(key, {
      ask: statelessQuestion(ask),
      settle: (reply) => {
        this.#open.delete(key)
        resolve(reply)
      },
    })
    signal?.addEventListener(
      'abort',
      () => {
        if (this.#open.delete(key)) reject(withdrawn())
      },
      { once: true },
    )
    for (const wake of this.#waiting) wake()
    return promise
  }

  entries(): [string, Ask][] {
    return [...this.#open].map(([key, { ask }]) => [key, ask])
  }

  /** Answers one question. Ignores unknown keys. */
  answer(key: string, reply: AskReply): void {
    this.#open.get(key)?.settle(reply)
  }

  /** Answers the questions to which the client responded. Ignores other responses. */
  answerAll(responses: JsonObject): void {
    for (const key of this.#open.keys()) {
      const raw = responses.raw(key)
      if (raw?.[0] === 0x7b) this.answer(key, { result: Buffer.from(raw) })
    }
  }

  /** Resolves when a question is open, when the task ends, or after `ms`. */
  async waitForQuestion(ms: number): Promise<void> {
    if (this.#open.size === 0) await this.waitForChange(ms)
  }

  /** Resolves when another question is asked, when the task ends, or after `ms`. */
  waitForChange(ms: number): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    return new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#waiting.add(done)
    })
  }

  /** Ends all waits. Called once, when no more questions can follow. */
  end(): void {
    this.#hasEnded = true
    for (const wake of this.#waiting) wake()
  }
}

function withdrawn(): Error {
  return new Error('the question was withdrawn')
}

interface Held {
  readonly questions: Questions
  readonly controller: AbortController
  idle: NodeJS.Timeout
}

/** Sends `tasks/result` to the backend. Resolves when the request has ended. */
export type OpenResult = (
  ask: (request: Ask, signal?: AbortSignal) => Promise<AskReply>,
  signal: AbortSignal,
) => Promise<unknown>

export class HeldInputs {
  readonly #held = new Map<string, Held>()

  /**
   * Returns the open questions as a raw InputRequests object, or undefined if no question is open. Opens the request to
   * the backend if necessary.
   */
  async read({ hash }: TaskRef, open: OpenResult): Promise<Buffer | undefined> {
    const held = this.#held.get(hash) ?? this.#open(hash, open)
    held.idle.refresh()
    await held.questions.waitForQuestion(firstQuestionMs)
    const questions = held.questions.entries()
    return questions.length === 0 ? undefined : inputRequests(questions)
  }

  answer({ hash }: TaskRef, responses: JsonObject): void {
    this.#held.get(hash)?.questions.answerAll(responses)
  }

  /** Closes the request to the backend. */
  end({ hash }: TaskRef): void {
    this.#close(hash, new Error('the task has ended'))
  }

  close(): void {
    for (const hash of this.#held.keys()) this.#close(hash, new Error('the server is shutting down'))
  }

  #open(hash: string, open: OpenResult): Held {
    if (this.#held.size >= maxHeld)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many tasks are waiting for input' })
    const questions = new Questions()
    const controller = new AbortController()
    const ended = open((request, signal) => questions.ask(request, signal), controller.signal).catch(() => {})
    const idle = setTimeout(() => this.#close(hash, new Error('the client did not answer in time')), idleMs)
    idle.unref()
    const held = { questions, controller, idle }
    this.#held.set(hash, held)
    void ended.then(() => {
      questions.end()
      if (this.#held.get(hash) === held) this.#close(hash, new Error('the request has ended'))
    })
    return held
  }

  #close(hash: string, reason: Error): void {
    const held = this.#held.get(hash)
    if (!held) return
    this.#held.delete(hash)
    clearTimeout(held.idle)
    held.controller.abort(reason)
  }
}
