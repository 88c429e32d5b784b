/** A set of policies that decides requests in the current engine instance. */
import { hash } from 'node:crypto'
import {
  type AuthorizationAnswer,
  type AuthorizationCall,
  callEngine,
  EngineFailure,
  type EngineError,
  errorText,
  prepare,
} from './engine.ts'

/** Equal sets share one prepared set in the engine. */
export class PreparedPolicies {
  readonly #policies: Readonly<Record<string, string>>
  readonly #id: string
  readonly #places: ReadonlyMap<string, number>

  /** Policies, keyed by id. */
  constructor(policies: Readonly<Record<string, string>>) {
    this.#policies = policies
    this.#places = new Map(Object.keys(policies).map((id, place) => [id, place]))
    this.#id = hash('sha256', JSON.stringify(policies), 'base64url')
  }

  /** Returns the problem with the policies as a set, or undefined. Never throws. */
  check(): string | undefined {
    try {
      const errors = callEngine((engine) => prepare(engine, this.#id, this.#policies))
      return errors.length > 0 ? errorText(errors) : undefined
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error
      return error.verdict
    }
  }

  /** Returns the decision, with the policies in their configured order. Throws EngineFailure; a retry may succeed. */
  authorize(call: AuthorizationCall): AuthorizationAnswer {
    let errors: readonly EngineError[] = []
    const response = callEngine((engine) => {
      errors = prepare(engine, this.#id, this.#policies)
      if (errors.length > 0) return undefined
      return engine.statefulIsAuthorized({ ...call, preparsedPolicySetId: this.#id })
    })
    if (response) return this.#inOrder(response)
    throw new EngineFailure(new Error(errorText(errors)))
  }

  /** Sorts the policies, because the engine returns them in a different order each time. */
  #inOrder(answer: AuthorizationAnswer): AuthorizationAnswer {
    if (answer.type === 'failure') return answer
    const place = (id: string): number => this.#places.get(id) ?? -1
    const { reason, errors } = answer.response.diagnostics
    reason.sort((a, b) => place(a) - place(b))
    errors.sort((a, b) => place(a.policyId) - place(b.policyId))
    return answer
  }
}
