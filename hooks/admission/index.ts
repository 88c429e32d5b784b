/** Public API of admission: checking resources, offline or in a review. */
export { type AdmissionReview, allowDelete, reviewAdmission } from './review.ts'
export { validateResource, type AdmissionVerdict } from './validate.ts'
