import { type Label, labels, probabilities } from './model.ts';
import { random } from './random.ts';
import { type Example, shuffle, train } from './training.ts';

/** What the model said of a text that it had not seen. */
export interface Judged {
  example: Example;
  shares: Record<Label, number>;
}

/** Judges each text by a model trained on the other folds; variants of a text are made inside its fold, so none is seen twice. */
export function crossValidate(examples: readonly Example[], folds = 5): Judged[] {
  const order = examples.map((_, index) => index);
  shuffle(order, random(1));
  return Array.from({ length: folds }, (_, fold) => {
    const kept = order.filter((_, place) => place % folds !== fold).map((index) => examples[index] as Example);
    const left = order.filter((_, place) => place % folds === fold).map((index) => examples[index] as Example);
    const model = train(kept);
    return left.map((example) => ({ example, shares: probabilities(model, example.text) }));
  }).flat();
}

export function best(shares: Record<Label, number>): Label {
  return labels.reduce((most, label) => (shares[label] > shares[most] ? label : most));
}
