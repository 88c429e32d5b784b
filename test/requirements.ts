/** The requirements manifest, by its short name. */
export * from './requirements/index.ts'
