"""Candidates in words: `svm(C=3)` is a support vector machine (C=3)."""

from __future__ import annotations

FAMILIES = {
    "svm": "a support vector machine",
    "linear": "a linear model",
    "logistic_regression": "a logistic regression",
    "random_forest": "a random forest",
    "extra_trees": "a forest of random trees",
    "lightgbm": "boosted trees (LightGBM)",
    "boosted_trees": "boosted trees",
    "neural_network": "a small neural network",
    "bayes_point": "a Bayes point machine",
    "averaged_perceptron": "an averaged perceptron",
    "blend": "a blend of several models",
    "text_linear": "a linear model of word counts",
    "text_bayes": "a naive Bayes model of word counts",
    "minirocket": "MiniRocket",
    "fcn": "a convolutional network for series",
    "convnet": "a small convolutional network",
    "unet": "a U-Net",
    "autoencoder": "an autoencoder",
    "bit_autoencoder": "an autoencoder over bits",
    "bit_rnn": "a recurrent network over bits",
    "catboost": "boosted trees (CatBoost)",
    "ensemble": "an ensemble",
    "lstm": "an LSTM network",
    "bilstm": "a bidirectional LSTM network",
    "gru": "a GRU network",
    "rnn": "a recurrent network",
    "seq2seq": "a sequence-to-sequence network",
    "multirocket_hydra": "MultiRocket with Hydra",
    "quant": "trees over quantiles of the series (QUANT)",
    "real_mlp": "a network for tables (RealMLP)",
    "tabm": "an ensemble of networks for tables (TabM)",
    "text_network": "a convolutional network for texts",
    "tree_lstm": "a Tree-LSTM",
    "tree_kernel_svm": "a support vector machine for trees",
    "pix2pix_gan": "a pix2pix network",
}
ARTICLES = {
    "resnet18": "a ResNet-18",
    "resnet50": "a ResNet-50",
    "vgg16": "a VGG-16",
    "alexnet": "an AlexNet",
    "bn_alexnet": "an AlexNet with batch normalisation",
    "resnet9": "a ResNet-9",
    "googlenet": "a GoogLeNet",
    "squeezenet": "a SqueezeNet",
    "nin": "a network in network",
}
AUGMENTED = {
    "flip": "with mirrored pictures",
    "affine": "with turned and shifted pictures",
    "none": "with pictures as they are",
}


def in_words(candidate: str) -> str:
    """A stored name in words; settings that have no words of their own stay in parentheses."""
    family, _, inside = candidate.partition("(")
    article = "an" if family[:1] in "aeiou" else "a"
    named = FAMILIES.get(family) or ARTICLES.get(family) or f"{article} {family.replace('_', ' ')}"
    settings = [part.strip() for part in inside.rstrip(")").split(",") if part.strip()]
    told: list[str] = []
    kept: list[str] = []
    for setting in settings:
        key, _, value = setting.partition("=")
        (told if key == "augment" and value in AUGMENTED else kept).append(
            AUGMENTED[value]
            if key == "augment" and value in AUGMENTED
            else f"{key.replace('_', ' ')} {value}"
        )
    return " ".join([named, *told, *([f"({', '.join(kept)})"] if kept else [])])
